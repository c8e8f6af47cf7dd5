import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { AuditQueryError, collectionSource, parseMoment, type RecordSource } from '#audit';
import { ConfigError, configPath } from '#config';
import { loadWithPlugins, toolsOfPlugins } from '#parley/instance';
import { BUILT_IN_TOOLS, toolDeclarations } from '#tools';
import { editConfiguration, type EditedConfiguration } from '../suggestion/configuration-edits.js';
import { budgetWindow, type NarrowedAgent, narrowAgents } from '../suggestion/narrowed-agents.js';
import { type RecordedUse, UseOfRecords } from '../suggestion/recorded-use.js';
import { auditCollections, auditFiles, noRecords } from './audit.js';
import { type OutputOptions, UsageError, withConfig } from './command-options.js';
import { countOf, jsonText, textLines } from './text-output.js';

interface SuggestOptions extends OutputOptions {
  readonly file?: readonly string[];
  readonly from?: string;
  readonly namedClasses?: boolean;
}

/** Writes the narrowest policy that the recorded calls would have passed, as a diff of the configuration. It changes no file. */
export async function runPolicySuggest(options: SuggestOptions): Promise<void> {
  const env = withConfig(options.config);
  const path = configPath(env, process.cwd());
  if (!existsSync(path))
    throw new ConfigError(path, [{ path: '', message: 'there is no such file: nothing could be narrowed' }]);
  const from = options.from === undefined ? null : readFrom(options.from);
  const loaded = await loadWithPlugins(env, process.cwd(), { declaredTools: true });
  const builtIn = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype));
  const tools = [...builtIn, ...toolsOfPlugins(loaded.plugins)].map(({ definition }) => definition);
  const { agents, policy, config } = loaded;
  const use = new UseOfRecords(agents.keys(), (name) => {
    const definition = agents.get(name);
    return definition ? budgetWindow(definition) : 0;
  });
  const collections = options.file ? [] : auditCollections(config);
  let lines = 0;
  try {
    const [collection] = collections;
    const sources: RecordSource[] = collection
      ? [collectionSource(collection)]
      : await auditFiles(options.file ?? [], config.audit);
    if (sources.length === 0) throw noRecords('name files with --file');
    for (const source of sources)
      for await (const { value } of source.read()) {
        lines += 1;
        if (isSince(value, from)) use.add(value);
      }
  } finally {
    await Promise.all(collections.map((collection) => collection.close()));
  }
  const recorded = use.result();
  if (lines > 0 && recorded.unreadable === lines)
    throw new Error(`none of the ${lines} lines is an audit record: nothing was compared`);
  const narrowed = narrowAgents(agents, policy, recorded, {
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    builtIn: new Set(builtIn.map(({ definition }) => definition.name)),
    namedClasses: options.namedClasses ?? false,
    people: new Set([...config.approvals.approvers, ...(config.console.operators ?? [])]),
  });
  const edited = editConfiguration(relative(process.cwd(), path), readFileSync(path, 'utf8'), narrowed);
  if (options.json) {
    process.stdout.write(jsonText(report(recorded, narrowed, edited)));
    return;
  }
  process.stdout.write(edited.diff);
  process.stderr.write(describeUse(recorded, narrowed, edited));
}

/** @throws UsageError */
function readFrom(text: string): string | null {
  try {
    return parseMoment(text, 'from') ?? null;
  } catch (error) {
    throw error instanceof AuditQueryError ? new UsageError(`--${error.message}`) : error;
  }
}

function isSince(value: unknown, from: string | null): boolean {
  const at = (value as { at?: unknown } | null | undefined)?.at;
  return from === null || typeof at !== 'string' || at >= from;
}

function report(
  recorded: RecordedUse,
  agents: readonly NarrowedAgent[],
  edited: EditedConfiguration,
): object {
  const { agents: _uses, unknownAgents, ...records } = recorded;
  return {
    records: { ...records, unknownAgents: Object.fromEntries(unknownAgents) },
    agents,
    byHand: edited.byHand,
    diff: edited.diff,
    suggested: edited.text,
  };
}

function describeUse(
  recorded: RecordedUse,
  agents: readonly NarrowedAgent[],
  edited: EditedConfiguration,
): string {
  const { records, refused, from, to, unreadable, unnamed, delegated, unknownAgents } = recorded;
  const lines = [
    records === 0
      ? 'No calls were recorded.'
      : `${countOf(records, 'call')} from ${from} to ${to}, of which ${countOf(refused, 'was refused and needs', 'were refused and need')} nothing.`,
    ...(unreadable > 0
      ? [
          `${countOf(unreadable, 'line is no audit record and was', 'lines are no audit records and were')} left out.`,
        ]
      : []),
    ...(unnamed > 0
      ? [
          `${countOf(unnamed, 'record names', 'records name')} no class: written before records named it, and no proof about classes.`,
        ]
      : []),
    ...(delegated > 0
      ? [`${countOf(delegated, 'call of a sub-agent counts', 'calls of sub-agents count')} for every agent.`]
      : []),
    ...[...unknownAgents]
      .slice(0, MAX_SHOWN_ENTRIES)
      .map(
        ([name, count]) =>
          `${countOf(count, 'call is', 'calls are')} of '${name}', which is no agent of this configuration.`,
      ),
    ...agents.flatMap(({ agent, narrowings, left }) => [
      `${agent}:`,
      ...narrowings.map(({ option, because }) => `  narrower  ${option}: ${because}`),
      ...left.map((line) => `  as it is  ${line}`),
    ]),
    ...edited.byHand.map(
      (agent) =>
        `${agent}: its entry has anchors or is not in the file: edit it by hand (--json has the options).`,
    ),
    edited.diff === ''
      ? 'Nothing to change.'
      : 'The present configuration was not changed. Read the diff, apply it with git apply -p0 or patch -p0, then run parley policy diff.',
  ];
  return textLines(lines);
}

const MAX_SHOWN_ENTRIES = 20;
