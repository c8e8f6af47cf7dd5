import { compareSurfaces, EVERY_FIELD, type SurfaceChange, widens } from '#dispatcher';
import { type LoadedService, loadWithPlugins } from '#parley/instance';
import { withConfig } from './command-options.js';
import { openConfiguredSimulation } from './simulation.js';
import { jsonText, textLines } from './text-output.js';

interface DiffOptions {
  readonly json?: boolean;
  readonly failOnWidening?: boolean;
}

/** Shows which agents gain and lose which permissions between two configurations. The gates of both decide. */
export async function runPolicyDiff(before: string, after: string, options: DiffOptions): Promise<void> {
  const configs: { file: string; loaded: LoadedService }[] = [];
  for (const file of [before, after]) configs.push({ file, loaded: await loadWithPlugins(withConfig(file)) });
  const [old, now] = configs.map(({ loaded }) => loaded) as [LoadedService, LoadedService];
  const { changes } = await compareSurfaces([old, now], (loaded, schemas) =>
    openConfiguredSimulation(loaded, withConfig(loaded === old ? before : after), { schemas }),
  );
  const widening = changes.some(widens);
  process.stdout.write(options.json ? jsonText({ widens: widening, changes }) : describeChanges(changes));
  if (options.failOnWidening && widening) process.exitCode = 1;
}

const MARKS = { gained: '+', lost: '-', changed: '~' } as const;
const PLURALS = {
  tool: 'tools',
  operation: 'operations',
  field: 'fields',
  approval: 'without approval',
} as const;

/** Changes for people, grouped by agent and class; `+` and `~` may let an agent do or read more. */
function describeChanges(changes: readonly SurfaceChange[]): string {
  const lines: string[] = [];
  for (const [agent, own] of groupBy(changes, (change) => change.agent)) {
    lines.push(agent);
    for (const [className, ofClass] of groupBy(own, (change) => change.className ?? '')) {
      if (className !== '') lines.push(`  ${className}`);
      const indent = className === '' ? '  ' : '    ';
      lines.push(...ofGroup(ofClass).map((line) => indent + line));
    }
  }
  const widening = changes.filter(widens).length;
  lines.push(`${widening} gained or changed, ${changes.length - widening} lost`);
  return textLines(lines);
}

function ofGroup(changes: readonly SurfaceChange[]): string[] {
  return [...groupBy(changes, ({ what, effect }) => `${what} ${effect}`).values()].flatMap((alike) => {
    const [first] = alike;
    if (!first) return [];
    const mark = MARKS[first.effect];
    switch (first.what) {
      case 'class':
        return [`${mark} the class`];
      case 'reach':
        return [`${mark} ${first.name}`];
      case 'limit':
        return alike.map(
          ({ name, before = 'none', after = 'none' }) => `${mark} rows by ${name}: ${before} -> ${after}`,
        );
      case 'mask':
      case 'database':
        return alike.map(({ name, before = '', after = '' }) => `${mark} ${name}: ${before} -> ${after}`);
      case 'tool':
      case 'operation':
      case 'field':
      case 'approval':
        return [
          `${mark} ${PLURALS[first.what]}: ${alike.map(({ name }) => (name === EVERY_FIELD ? 'any other field' : name)).join(', ')}`,
        ];
    }
  });
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groups;
}
