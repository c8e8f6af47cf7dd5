import type { AgentSurface, ClassSurface } from '@parley/server';

/** What one agent may do with one class. Lists are sorted and separated by spaces, so that a snapshot shows what changed. */
export interface AccessRow {
  /** By its name in the configuration. */
  readonly agent: string;
  /** `*`: tools that are about no class in particular. */
  readonly class: string;
  /** Those that no gate refuses; a `?` behind one: a person is asked first. */
  readonly tools: string;
  /** `*`: every field, those to come included. */
  readonly fields: string;
  /** What stands for the value of a field. */
  readonly masked: string;
  /** Which rows exist for the agent, by who limits them, and for which tools it is otherwise. */
  readonly rows: string;
  /** Listings name the class, and joins and includes may reach it. */
  readonly listed: boolean;
}

const listed = (names: Iterable<string>): string => [...names].sort().join(' ');

/** One row for each class that the agent may use in any way, and one for its other tools. */
export function tableOf(agent: string, { tools, classes }: AgentSurface): AccessRow[] {
  const asking = (name: string) => (tools.get(name) === 'asks approval' ? `${name}?` : name);
  const ofClasses = new Set([...classes.values()].flatMap((surface) => [...surface.tools.keys()]));
  const others = [...tools.keys()].filter((name) => !ofClasses.has(name));
  const byName = [...classes].sort(([one], [other]) => (one < other ? -1 : 1));
  return [
    { agent, class: '*', tools: listed(others.map(asking)), fields: '', masked: '', rows: '', listed: false },
    ...byName.map(([className, surface]) => ({
      agent,
      class: className,
      tools: listed([...surface.tools.keys()].map(asking)),
      fields: listed(surface.fields),
      masked: listed([...surface.masks].map(([field, mask]) => `${field}: ${mask};`)),
      rows: rowsOf(surface.tools),
      listed: surface.listed,
    })),
  ];
}

/** What holds for most tools, and after that what holds for others alone. */
function rowsOf(tools: ClassSurface['tools']): string {
  const byLimits = new Map<string, string[]>();
  for (const [tool, limits] of tools) {
    const told = [...limits].map(([origin, where]) => `${origin} ${where}`).join(', ') || 'all';
    byLimits.set(told, [...(byLimits.get(told) ?? []), tool]);
  }
  const [most, ...others] = [...byLimits].sort(
    ([one, few], [other, many]) => many.length - few.length || (one < other ? -1 : 1),
  );
  return [most?.[0] ?? '', ...others.map(([told, names]) => `${told} for ${listed(names)}`)].join('; ');
}
