import { BUDGET_STEPS, canonicalClassName, isClassName } from '#core';
import { isToolName } from '#tools';

/** Steps of a window that are added up: one more that its uses may count, and one for the edges of both. */
const WINDOW_STEPS = BUDGET_STEPS + 2;
/** Entries of all counts of rows together, about 50 bytes each. */
const MAX_STEPS = 500_000;
/** Names of one agent; tools and classes that exist are fewer. */
const MAX_NAMES = 10_000;

/** Failures of calls that every rule permitted. */
const AFTER_THE_RULES: ReadonlySet<unknown> = new Set([
  'timeout',
  'cancelled',
  'parse_error',
  'internal_error',
  'audit_unavailable',
]);

/** Records of readings of exports name no tool of their own. */
const TOOL_OF_READINGS = 'export_data';

/** Records of prompts and resources, which are not tools. */
const OF_READS = /^(prompt|resource):/;

/** Only such names: they are written into a configuration, where other text could mean something else. */
const isRecordedName = (tool: string): boolean => isToolName(tool) || OF_READS.test(tool);

/** What the calls of one agent used. */
export interface AgentUse {
  /** Calls that every rule permitted. */
  readonly calls: number;
  /** Calls by tool. */
  readonly tools: ReadonlyMap<string, number>;
  /** Tools that named or joined a class, by canonical class. */
  readonly classes: ReadonlyMap<string, ReadonlySet<string>>;
  /** Prompts and resources of an application that read rows. */
  readonly reads: number;
  /** Most rows of one principal within a window; null: unknown. */
  readonly rows: number | null;
}

/** Everything that the records hold about the configured agents. */
export interface RecordedUse {
  readonly agents: ReadonlyMap<string, AgentUse>;
  /** Records that were counted. */
  readonly records: number;
  readonly from: string | null;
  readonly to: string | null;
  /** Lines that are not records. */
  readonly unreadable: number;
  /** Calls that a rule refused: they need nothing. */
  readonly refused: number;
  /** Calls by sub-agents: they count for every agent, because records do not name the one at the root. */
  readonly delegated: number;
  /** Calls of agents that the configuration does not have. */
  readonly unknownAgents: ReadonlyMap<string, number>;
  /** Calls with a class argument that the record does not name: written by an earlier version. */
  readonly unnamed: number;
}

/** How long a window of the rows of an agent is, in seconds. */
export type WindowOf = (agent: string) => number;

/** Folds audit records, in any order, into what each agent used. Memory does not grow with the number of records. */
export class UseOfRecords {
  private readonly counts: ReadonlyMap<string, AgentCounts>;
  private readonly unknownAgents = new Map<string, number>();
  private records = 0;
  private unreadable = 0;
  private refused = 0;
  private delegated = 0;
  private unnamed = 0;
  private from: string | null = null;
  private to: string | null = null;
  private steps = 0;

  constructor(agents: Iterable<string>, windowOf: WindowOf) {
    this.counts = new Map([...agents].map((name) => [name, new AgentCounts(windowOf(name))]));
  }

  /** @param value a line of the log, parsed; records of other kinds are skipped */
  add(value: unknown): void {
    const record = value as Readonly<Record<string, unknown>> | null | undefined;
    if (record === null || typeof record !== 'object' || typeof record['type'] !== 'string') {
      this.unreadable += 1;
      return;
    }
    const { type, tool, agent_name: agent, at } = record;
    if (type !== 'tool_call' && type !== 'export_read') return;
    const time = typeof at === 'string' ? Date.parse(at) : Number.NaN;
    if (typeof tool !== 'string' || typeof agent !== 'string' || Number.isNaN(time)) {
      this.unreadable += 1;
      return;
    }
    this.records += 1;
    const moment = new Date(time).toISOString();
    if (this.from === null || moment < this.from) this.from = moment;
    if (this.to === null || moment > this.to) this.to = moment;
    const counted = this.readCounts(record, agent);
    for (const one of counted) this.steps += one.addRows(record, time, this.steps < MAX_STEPS);
    if (record['success'] !== true && !AFTER_THE_RULES.has(record['error_code'])) {
      this.refused += 1;
      return;
    }
    if (!isRecordedName(tool)) {
      this.unreadable += 1;
      return;
    }
    // A name that no class can have is not written into a configuration.
    const named = isClassName(record['class_name']) ? record['class_name'] : null;
    if (named === null && namesClass(record)) this.unnamed += 1;
    for (const one of counted) one.addCall(type === 'export_read' ? TOOL_OF_READINGS : tool, named, record);
  }

  private readCounts(record: Readonly<Record<string, unknown>>, agent: string): readonly AgentCounts[] {
    if (typeof record['agent_depth'] === 'number' && record['agent_depth'] > 0) {
      this.delegated += 1;
      return [...this.counts.values()];
    }
    const own = this.counts.get(agent);
    if (own) return [own];
    if (this.unknownAgents.size < MAX_NAMES || this.unknownAgents.has(agent))
      this.unknownAgents.set(agent, (this.unknownAgents.get(agent) ?? 0) + 1);
    return [];
  }

  result(): RecordedUse {
    const { records, unreadable, refused, delegated, unnamed, unknownAgents, from, to } = this;
    const agents = new Map([...this.counts].map(([name, counts]) => [name, counts.result()]));
    return { agents, records, unreadable, refused, delegated, unnamed, unknownAgents, from, to };
  }
}

function namesClass({ args_keys: names }: Readonly<Record<string, unknown>>): boolean {
  return Array.isArray(names) && names.includes('class_name');
}

/** The classes that a call joined. Where a record does not name all of them, its classes are not known. */
function listJoined({ joined_classes: names }: Readonly<Record<string, unknown>>): readonly string[] {
  if (names === undefined) return [];
  if (!Array.isArray(names)) return [NO_NAME];
  return names.map((name: unknown) => (isClassName(name) ? name : NO_NAME));
}

class AgentCounts {
  private calls = 0;
  private reads = 0;
  private readonly tools = new Map<string, number>();
  private readonly classes = new Map<string, Set<string>>();
  /** Rows by principal and step of the window; null: unknown. */
  private rows: Map<string, Map<number, number>> | null = new Map();
  private readonly step: number;

  constructor(window: number) {
    this.step = (window * 1000) / BUDGET_STEPS;
  }

  addCall(tool: string, className: string | null, record: Readonly<Record<string, unknown>>): void {
    this.calls += 1;
    if (OF_READS.test(tool)) {
      this.reads += 1;
      return;
    }
    if (this.tools.size < MAX_NAMES || this.tools.has(tool))
      this.tools.set(tool, (this.tools.get(tool) ?? 0) + 1);
    for (const joined of listJoined(record)) this.addClass(tool, joined);
    if (className !== null) this.addClass(tool, className);
    else if (namesClass(record)) this.addClass(tool, NO_NAME);
  }

  private addClass(tool: string, className: string): void {
    const canonical = className === NO_NAME ? NO_NAME : canonicalClassName(className);
    // A class that was left out would be refused by what is suggested: beyond the limit the classes are not known.
    const name = this.classes.size < MAX_NAMES || this.classes.has(canonical) ? canonical : NO_NAME;
    const tools = this.classes.get(name) ?? new Set();
    this.classes.set(name, tools.add(tool));
  }

  /** @returns how many entries were added */
  addRows(record: Readonly<Record<string, unknown>>, time: number, room: boolean): number {
    const { rows, principal, duration_ms: duration } = record;
    if (this.rows === null || typeof rows !== 'number' || rows <= 0) return 0;
    // Long readings are charged on their way, which a record does not show.
    const long = typeof duration !== 'number' || duration > this.step;
    if (long || !Number.isSafeInteger(rows) || !room || typeof principal !== 'string') {
      this.rows = null;
      return 0;
    }
    const steps = this.rows.get(principal) ?? new Map<number, number>();
    this.rows.set(principal, steps);
    const at = Math.floor(time / this.step);
    const isNew = !steps.has(at);
    steps.set(at, (steps.get(at) ?? 0) + rows);
    return isNew ? 1 : 0;
  }

  result(): AgentUse {
    const { calls, reads, tools, classes } = this;
    return { calls, reads, tools, classes, rows: this.rows && mostOfAny(this.rows) };
  }
}

/** Stands for classes whose names are not recorded. */
export const NO_NAME = '';

/** There may be too many principals for the arguments of one call of `Math.max`. */
function mostOfAny(principals: ReadonlyMap<string, ReadonlyMap<number, number>>): number {
  let most = 0;
  for (const steps of principals.values()) most = Math.max(most, mostRows(steps));
  return most;
}

/** The most rows in any window, whose steps need not be those of the budget's. */
function mostRows(steps: ReadonlyMap<number, number>): number {
  const sorted = [...steps].sort(([one], [other]) => one - other);
  let most = 0;
  let sum = 0;
  let first = 0;
  for (const [at, rows] of sorted) {
    sum += rows;
    for (; (sorted[first] as [number, number])[0] <= at - WINDOW_STEPS; first += 1)
      sum -= (sorted[first] as [number, number])[1];
    most = Math.max(most, sum);
  }
  return most;
}
