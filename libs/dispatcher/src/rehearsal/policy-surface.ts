import { type Agent, type LimitOrigin, Refused } from '#agent';
import type { GovernedRecords } from '#data';
import type { ToolRunner } from '#tools';
import type { RecordsSource } from '../records-source.js';
import type { Rehearsal, Rehearser } from './rehearsal.js';
import { sampleArguments, takesClass } from './sample-arguments.js';

/** Stands for every field that a class without an allowlist will ever have. */
export const EVERY_FIELD = '*';

/** Predicates by origin, as JSON text. */
export type Limits = ReadonlyMap<LimitOrigin, string>;

/** What one agent may do with one class. */
export interface ClassSurface {
  /** Tools that pass every gate for the class, each with what limits its rows. */
  readonly tools: ReadonlyMap<string, Limits>;
  /** Those it may read, by wire name; `*`: those to come as well. */
  readonly fields: ReadonlySet<string>;
  /** Path → what the agent gets in place of the value; what is dropped is not among them. */
  readonly masks: ReadonlyMap<string, string>;
  /** It appears in listings, and joins and includes may reach it. */
  readonly listed: boolean;
}

/** What one agent may do under one configuration, as the deciding code answers. */
export interface AgentSurface {
  /** Those that no gate of the agent alone refuses. */
  readonly tools: ReadonlyMap<string, 'runs' | 'asks approval'>;
  /** Those it may use in any way, by name. */
  readonly classes: ReadonlyMap<string, ClassSurface>;
}

export const NO_SURFACE: AgentSurface = { tools: new Map(), classes: new Map() };

export interface SurfaceParts {
  readonly runner: ToolRunner;
  readonly rehearser: Rehearser;
  readonly records: RecordsSource;
}

/** Asks about every tool the agent may call, on every given class. */
export async function surfaceOf(
  parts: SurfaceParts,
  agent: Agent,
  classNames: readonly string[],
): Promise<AgentSurface> {
  const { runner, rehearser } = parts;
  const records = parts.records.for({
    agent,
    signal: new AbortController().signal,
    progress: () => undefined,
  });
  const listed = new Set((await records.classes()).map(({ className }) => className));
  const tools = new Map<string, 'runs' | 'asks approval'>();
  const perClass = new Map(classNames.map((name) => [name, new Map<string, Limits>()]));
  for (const { name, inputSchema } of runner.list({ agent })) {
    if (!takesClass(inputSchema)) {
      const { asksApproval } = await rehearser.rehearse(agent, name, sampleArguments(inputSchema, ''));
      tools.set(name, asksApproval ? 'asks approval' : 'runs');
      continue;
    }
    for (const [className, allowed] of perClass) {
      const call = await rehearser.rehearse(agent, name, sampleArguments(inputSchema, className));
      tools.set(name, call.asksApproval ? 'asks approval' : 'runs');
      if (permitted(call, className)) allowed.set(name, limitsOf(className, call.injected));
    }
  }
  const classes = new Map<string, ClassSurface>();
  for (const [className, allowed] of perClass) {
    const surface = {
      tools: allowed,
      ...(await fieldsOf(records, className)),
      listed: listed.has(className),
    };
    if (allowed.size > 0 || surface.listed) classes.set(className, surface);
  }
  return { tools, classes };
}

/** A write of nothing is refused for its arguments, but only after class and tenant let it pass. */
function permitted({ allowed, refusal, passed }: Rehearsal, className: string): boolean {
  if (allowed) return true;
  const passes = (gate: string) => passed.some((entry) => entry.gate === gate && entry.subject === className);
  return refusal?.code === 'invalid_argument' && passes('class') && passes('tenant');
}

function limitsOf(className: string, injected: Rehearsal['injected']): Limits {
  const own = injected.filter((limit) => limit.className === className);
  return new Map(own.map(({ origin, where }) => [origin, JSON.stringify(where)]));
}

async function fieldsOf(
  records: GovernedRecords,
  className: string,
): Promise<Pick<ClassSurface, 'fields' | 'masks'>> {
  try {
    const { fields, masks, policy } = await records.describe(className);
    return { fields: new Set([...fields, ...(policy.fields === null ? [EVERY_FIELD] : [])]), masks };
  } catch (error) {
    if (error instanceof Refused) return { fields: new Set(), masks: new Map() };
    throw error;
  }
}
