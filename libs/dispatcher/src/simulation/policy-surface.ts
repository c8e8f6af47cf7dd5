import { type Agent, McpRequest, type LimitOrigin, Refused } from '#core';
import type { GovernedRecords } from '#data';
import type { ToolRunner } from '#tools';
import type { RecordsSource } from '../reads/read-accounts.js';
import { type SimulatedCall, type Simulator, sampleArguments, takesClass } from './simulation.js';

/** Every present and future field of a class without an allowlist. */
export const EVERY_FIELD = '*';

/** Predicates by origin, as JSON text. */
type Limits = ReadonlyMap<LimitOrigin, string>;

/** What one agent may do with one class. */
export interface ClassSurface {
  /** Tools that pass every gate for the class, each with its row limits. */
  readonly tools: ReadonlyMap<string, Limits>;
  /** The readable fields by wire name; `*`: includes future fields. */
  readonly fields: ReadonlySet<string>;
  /** Maps a path to the value that the agent receives instead; dropped fields are not included. */
  readonly masks: ReadonlyMap<string, string>;
  /** The class appears in listings, and joins and includes may reach it. */
  readonly listed: boolean;
  /** Name of the database that holds it; null: the first one. */
  readonly database: string | null;
}

/** What one agent may do under one configuration, according to the gates. */
export interface AgentSurface {
  /** Tools that no agent gate refuses. */
  readonly tools: ReadonlyMap<string, 'runs' | 'asks approval'>;
  /** Classes that the agent may use in any way, by name. */
  readonly classes: ReadonlyMap<string, ClassSurface>;
}

const NO_SURFACE: AgentSurface = { tools: new Map(), classes: new Map() };

export interface SurfaceDependencies {
  readonly runner: ToolRunner;
  readonly simulator: Simulator;
  readonly records: RecordsSource;
}

/** Checks every tool that the agent may call on every given class. @throws Refused when the database cannot be read */
export async function describeSurface(
  parts: SurfaceDependencies,
  agent: Agent,
  classNames: readonly string[],
): Promise<AgentSurface> {
  const { runner, simulator } = parts;
  const records = parts.records.for(new McpRequest(agent));
  const listed = new Set((await records.classes()).map(({ className }) => className));
  const simulate = async (name: string, args: object) => {
    const call = await simulator.simulate(agent, name, args);
    // A database that went away meanwhile says nothing about rights: it is said once, and not waited for at each call.
    if (call.refusal?.code === 'parse_error') await records.classes();
    return call;
  };
  const tools = new Map<string, 'runs' | 'asks approval'>();
  const perClass = new Map(classNames.map((name) => [name, new Map<string, Limits>()]));
  for (const tool of runner.list({ agent })) {
    const { name, inputSchema } = tool;
    if (!takesClass(inputSchema)) {
      const { asksApproval } = await simulate(name, sampleArguments(tool, ''));
      tools.set(name, asksApproval ? 'asks approval' : 'runs');
      continue;
    }
    for (const [className, allowed] of perClass) {
      const call = await simulate(name, sampleArguments(tool, className));
      tools.set(name, call.asksApproval ? 'asks approval' : 'runs');
      if (isPermitted(call, className)) allowed.set(name, listLimits(className, call.injected));
    }
  }
  const classes = new Map<string, ClassSurface>();
  for (const [className, allowed] of perClass) {
    const surface = {
      tools: allowed,
      ...(await listFields(records, className)),
      listed: listed.has(className),
    };
    if (allowed.size > 0 || surface.listed) classes.set(className, surface);
  }
  return { tools, classes };
}

/** An empty write is refused for its arguments, but only after the class and tenant gates admit it. */
function isPermitted({ allowed, refusal, passed }: SimulatedCall, className: string): boolean {
  if (allowed) return true;
  const passes = (gate: string) => passed.some((entry) => entry.gate === gate && entry.subject === className);
  return refusal?.code === 'invalid_argument' && passes('class') && passes('tenant');
}

function listLimits(className: string, injected: SimulatedCall['injected']): Limits {
  const own = injected.filter((limit) => limit.className === className);
  return new Map(own.map(({ origin, where }) => [origin, JSON.stringify(where)]));
}

async function listFields(
  records: GovernedRecords,
  className: string,
): Promise<Pick<ClassSurface, 'fields' | 'masks' | 'database'>> {
  try {
    const { fields, masks, policy } = await records.describe(className);
    const readable = new Set([...fields, ...(policy.fields === null ? [EVERY_FIELD] : [])]);
    return { fields: readable, masks, database: policy.database };
  } catch (error) {
    if (error instanceof Refused) return { fields: new Set(), masks: new Map(), database: null };
    throw error;
  }
}

/** One difference between the permissions of an agent under two configurations. */
export interface SurfaceChange {
  readonly agent: string;
  /** Absent when the change concerns no particular class. */
  readonly className?: string;
  /**
   * `reach`: listings, joins and includes. `limit`: the rows that exist for the agent. `mask`: the replacement of
   * values. `database`: the class is one of another database, with other rows.
   */
  readonly what:
    'tool' | 'class' | 'operation' | 'field' | 'reach' | 'limit' | 'mask' | 'approval' | 'database';
  /** The name of the tool, class or field, or the origin of the limit. */
  readonly name: string;
  /** A removed limit is a gain. The effect of a reworded limit is undecidable: `changed`. */
  readonly effect: 'gained' | 'lost' | 'changed';
  readonly before?: string;
  readonly after?: string;
}

/** Whether the change could let an agent do or read more. */
export function widens({ effect }: SurfaceChange): boolean {
  return effect !== 'lost';
}

/** @param before by agent name; an agent that is missing on a side has no permissions there */
export function surfaceChanges(
  before: ReadonlyMap<string, AgentSurface>,
  after: ReadonlyMap<string, AgentSurface>,
): SurfaceChange[] {
  return allOf(before.keys(), after.keys()).flatMap((agent) => {
    const [old, now] = [before.get(agent) ?? NO_SURFACE, after.get(agent) ?? NO_SURFACE];
    return [
      ...namesChanged(old.tools.keys(), now.tools.keys()).map(([name, effect]): SurfaceChange => ({
        agent,
        what: 'tool',
        name,
        effect,
      })),
      ...approvalChanges(agent, old, now),
      ...allOf(old.classes.keys(), now.classes.keys()).flatMap((className) =>
        classChanges(agent, className, old.classes.get(className), now.classes.get(className)),
      ),
    ];
  });
}

function approvalChanges(agent: string, old: AgentSurface, now: AgentSurface): SurfaceChange[] {
  return [...now.tools].flatMap(([name, after]): SurfaceChange[] => {
    const before = old.tools.get(name);
    if (before === undefined || before === after) return [];
    return [{ agent, what: 'approval', name, effect: after === 'runs' ? 'gained' : 'lost', before, after }];
  });
}

const NO_CLASS: ClassSurface = {
  tools: new Map(),
  fields: new Set(),
  masks: new Map(),
  listed: false,
  database: null,
};
/** The database that holds users, roles and sessions, whatever its name. */
const FIRST_DATABASE = 'the first one';

function classChanges(
  agent: string,
  className: string,
  before: ClassSurface | undefined,
  after: ClassSurface | undefined,
): SurfaceChange[] {
  const [old, now] = [before ?? NO_CLASS, after ?? NO_CLASS];
  const of = (what: SurfaceChange['what'], name: string, effect: SurfaceChange['effect']): SurfaceChange => ({
    agent,
    className,
    what,
    name,
    effect,
  });
  const effect = now.listed ? 'gained' : 'lost';
  return [
    ...(before === undefined ? [of('class', className, 'gained')] : []),
    ...(after === undefined ? [of('class', className, 'lost')] : []),
    ...(before && after && before.database !== after.database
      ? [
          {
            ...of('database', 'database', 'changed'),
            before: before.database ?? FIRST_DATABASE,
            after: after.database ?? FIRST_DATABASE,
          },
        ]
      : []),
    ...namesChanged(old.tools.keys(), now.tools.keys()).map(([name, how]) => of('operation', name, how)),
    ...namesChanged(old.fields, now.fields)
      .filter(([name]) => !old.masks.has(name) && !now.masks.has(name))
      .map(([name, how]) => of('field', name, how)),
    ...maskChanges(old, now).map((mask) => ({ ...mask, agent, className })),
    ...(old.listed === now.listed ? [] : [of('reach', 'listings, joins and includes', effect)]),
    ...limitChanges(old, now).map((limit) => ({ ...limit, agent, className })),
  ];
}

type LimitChange = Pick<SurfaceChange, 'what' | 'name' | 'effect' | 'before' | 'after'>;

/** The stricter first. `clear` and `absent` are the states of a field without a mask. */
const STRICTNESS = ['absent', 'deny', 'mask', 'hash', 'clear'];

function maskChanges(old: ClassSurface, now: ClassSurface): LimitChange[] {
  const findMask = ({ masks, fields }: ClassSurface, name: string) =>
    masks.get(name) ?? (fields.has(name.split('.')[0] as string) ? 'clear' : 'absent');
  return allOf(old.masks.keys(), now.masks.keys()).flatMap((name): LimitChange[] => {
    const [before, after] = [findMask(old, name), findMask(now, name)];
    if (before === after) return [];
    const weaker = STRICTNESS.indexOf(readForm(after)) - STRICTNESS.indexOf(readForm(before));
    const effect = weaker === 0 ? 'changed' : weaker > 0 ? 'gained' : 'lost';
    return [{ what: 'mask', name, effect, before, after }];
  });
}

/** A kept suffix counts like a pseudonym. */
function readForm(mask: string): string {
  const [form = mask, more] = mask.split(',');
  return form === 'mask' && more !== undefined ? 'hash' : form;
}

/** Compared per tool, because a filter may apply to one tool only; reported once. */
function limitChanges(old: ClassSurface, now: ClassSurface): LimitChange[] {
  const found = new Map<string, LimitChange>();
  for (const [tool, after] of now.tools) {
    const before = old.tools.get(tool);
    for (const change of before ? limitsChanged(before, after) : [])
      found.set(JSON.stringify(change), change);
  }
  return [...found.values()];
}

function limitsChanged(old: Limits, now: Limits): LimitChange[] {
  return allOf(old.keys(), now.keys()).flatMap((name): LimitChange[] => {
    const [before, after] = [old.get(name), now.get(name)];
    if (before === after) return [];
    if (before === undefined) return [{ what: 'limit', name, effect: 'lost', ...(after && { after }) }];
    if (after === undefined) return [{ what: 'limit', name, effect: 'gained', before }];
    return [{ what: 'limit', name, effect: 'changed', before, after }];
  });
}

function namesChanged(before: Iterable<string>, after: Iterable<string>): [string, 'gained' | 'lost'][] {
  const [old, now] = [new Set(before), new Set(after)];
  return allOf(old, now)
    .filter((name) => old.has(name) !== now.has(name))
    .map((name) => [name, now.has(name) ? 'gained' : 'lost']);
}

function allOf<Name extends string>(one: Iterable<Name>, other: Iterable<Name>): Name[] {
  return [...new Set([...one, ...other])].sort();
}
