import { oneLine } from '#audit';
import { MOMENT_RULE, readMoment } from '#core';
import { decideApproval, type DecisionOptions } from './approvals.js';
import { UsageError } from './command-options.js';
import { ServiceClient, type ServiceOptions } from './service-client.js';
import { countOf, jsonText, textTable } from './text-output.js';

interface ChangesOptions extends ServiceOptions {
  readonly agent?: string;
  readonly key?: string;
  readonly class?: string;
  readonly since?: string;
  readonly until?: string;
  readonly state?: string;
}

interface UndoOptions extends Omit<ChangesOptions, 'state' | 'class'> {
  readonly dryRun?: boolean;
  readonly skipConflicts?: boolean;
}

type Members = Readonly<Record<string, unknown>>;

/** The change sets of the operator's tenant, newest first. */
export async function listChanges(options: ChangesOptions): Promise<void> {
  const { agent, key, class: className, since, until, state, json } = options;
  const query = new URLSearchParams();
  const given = {
    agent,
    key,
    class: className,
    since: toTime('since', since),
    until: toTime('until', until),
    state,
  };
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, value);
  const answer = await new ServiceClient(options).call(`${ROUTE}?${query.toString()}`);
  const sets = answer['change_sets'] as readonly Members[];
  if (json) process.stdout.write(jsonText(sets));
  else
    process.stdout.write(
      sets.length > 0 ? textTable(HEADER, sets.map(toCells)) : 'There are no change sets.\n',
    );
}

/** One set, row by row. */
export async function showChanges(id: string, options: ServiceOptions): Promise<void> {
  process.stdout.write(jsonText(await new ServiceClient(options).call(toPath(id))));
}

/** Drops a set that is not applied. */
export async function discardChanges(id: string, options: ServiceOptions): Promise<void> {
  process.stdout.write(jsonText(await new ServiceClient(options).call(`${toPath(id)}/discard`, {})));
}

/** Decides the case that asks about a set, as it was shown. @throws UsageError */
export const decideChanges =
  (decision: 'approve' | 'deny') =>
  async (id: string, options: DecisionOptions): Promise<void> => {
    const { approvals } = await new ServiceClient(options).call(
      `/approvals?${new URLSearchParams({ change_set: id }).toString()}`,
    );
    const found = (approvals as readonly Members[] | undefined)?.find((one) => one['change_set'] === id);
    if (!found) throw new Error(`change set ${id} does not wait for your decision`);
    const opened = toCell(found['id']);
    if (options.digest === undefined)
      throw new UsageError(`--digest is needed: parley approvals show ${opened} prints it with every row`);
    await decideApproval(decision)(opened, options);
  };

/** Takes one set back, or what an agent wrote within a time. @throws UsageError */
export async function undoChanges(id: string | undefined, options: UndoOptions): Promise<void> {
  const { agent, key, dryRun, skipConflicts, json } = options;
  const since = toTime('since', options.since);
  const until = toTime('until', options.until) ?? new Date().toISOString();
  const times = [agent, key, options.since, options.until].filter((given) => given !== undefined).length;
  if (id === undefined ? agent === undefined || since === undefined : times > 0)
    throw new UsageError('either the ID of a change set is needed, or --agent and --since, not both');
  const target = id === undefined ? { agent, key, since, until } : { change_set: id };
  const client = new ServiceClient(options);
  const preview = await client.call(`${ROUTE}/undo`, target);
  if (dryRun) {
    process.stdout.write(json ? jsonText(preview) : describePreview(preview));
    return;
  }
  const { digest } = preview;
  const undone = await client.call(`${ROUTE}/undo`, {
    ...target,
    digest,
    skip_conflicts: skipConflicts === true,
  });
  process.stdout.write(
    json ? jsonText(undone) : `Taken back by change set ${toCell(undone['change_set'])}.\n`,
  );
}

const ROUTE = '/console/api/changes';
const HEADER = ['ID', 'AGENT', 'STATE', 'OPENED', 'APPLIED', 'ROWS', 'KEY', 'TITLE'];

const toPath = (id: string) => `${ROUTE}/${encodeURIComponent(id)}`;

const toCells = (set: Members): string[] => [
  toCell(set['change_set']),
  toCell(set['agent']),
  set['undone_by'] === undefined ? toCell(set['state']) : 'undone',
  toCell(set['opened_at']),
  toCell(set['applied_at']),
  describeRows(set['rows'] as Members),
  (set['key_names'] as readonly string[] | undefined)?.join(', ') || '-',
  toCell(set['title']),
];

const toCell = (value: unknown): string => (typeof value === 'string' ? value : '-');

const describeRows = (rows: Members): string =>
  Object.entries(rows)
    .flatMap(([kind, count]) => (count === 0 ? [] : [`${String(count)} ${kind}`]))
    .join(', ') || 'none';

const describeUnnamed = (sets: number): string =>
  `${countOf(sets, 'change set')} of this time ${sets === 1 ? 'has' : 'have'} rows of which no key is known: they stay as they are.`;

function describePreview(preview: Members): string {
  const sets = preview['change_sets'] as readonly string[];
  const conflicts = preview['conflicts'] as readonly Members[];
  const entries = preview['entries'] as readonly Members[];
  const name = (row: Members) =>
    row['class_name'] === undefined ? '(hidden)' : `${toCell(row['class_name'])} ${toCell(row['object_id'])}`;
  return [
    `${countOf(sets.length, 'change set')} would be taken back: ${describeRows(preview['rows'] as Members)}.`,
    ...(preview['unnamed_sets'] ? [describeUnnamed(Number(preview['unnamed_sets']))] : []),
    ...conflicts.map((row) => oneLine(`conflict: ${name(row)}: ${toCell(row['conflict'])}`)),
    ...entries.map((row) => jsonText(row).trimEnd().replaceAll(/\n */g, ' ')),
    '',
  ].join('\n');
}

/** @throws UsageError */
function toTime(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = readMoment(text);
  if (time === null) throw new UsageError(`--${option}: expected ${MOMENT_RULE}`);
  return new Date(time).toISOString();
}
