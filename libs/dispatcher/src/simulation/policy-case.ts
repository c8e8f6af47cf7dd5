import { isDeepStrictEqual } from 'node:util';
import { Agent, canonicalClassName, DENIAL_KINDS, ERROR_CODES, type Refusal, isJsonObject } from '#core';
import type { SimulatedCall, Simulator } from './simulation.js';

type PlainObject = Readonly<Record<string, unknown>>;

/** The expected refusal of a case; absent members are not compared. */
interface ExpectedRefusal {
  readonly refused: string;
  readonly gate?: string;
  readonly kind?: string;
  readonly field?: string;
}

/** What a token or an application would say of the caller; absent members are not set. */
export interface CaseCaller {
  readonly user?: string;
  readonly tenant?: string | number;
  readonly claims?: PlainObject;
}

/**
 * One rule of a policy as data: the agent, the call and the expected outcome (docs/guide/policy.md#testing-a-policy).
 */
export interface PolicyCase {
  /** The description of the rule. */
  readonly rule: string;
  readonly agent: string;
  readonly tool: string;
  readonly arguments: PlainObject;
  /** Whose call it is, for row filters with values of the agent and for tenants. */
  readonly caller: CaseCaller;
  readonly expect: { readonly allowed: true } | ExpectedRefusal;
  /** Maps a class to members that its injected predicates must have. */
  readonly injected: Readonly<Record<string, PlainObject>>;
  /** Maps a field of the call's class to its mask, `none` for clear values. */
  readonly masked: Readonly<Record<string, string>>;
}

const CASE_KEYS = [
  'rule',
  'agent',
  'tool',
  'arguments',
  'caller',
  'expect',
  'injected',
  'injectedInto',
  'masked',
];
const REFUSAL_KEYS = ['refused', 'gate', 'kind', 'field'];

/** @returns the cases, and every error of invalid cases */
export function readPolicyCases(data: unknown): { cases: PolicyCase[]; errors: string[] } {
  if (!Array.isArray(data) || data.length === 0) {
    return { cases: [], errors: ['a file of policy cases is a list with at least one case'] };
  }
  const errors: string[] = [];
  const cases = data.flatMap((entry: unknown, index) => {
    const before = errors.length;
    const read = readCase(entry, index, errors);
    return read && errors.length === before ? [read] : [];
  });
  return { cases, errors };
}

function readCase(entry: unknown, index: number, errors: string[]): PolicyCase | null {
  const at = `case ${index + 1}`;
  if (!isJsonObject(entry)) {
    errors.push(`${at}: must be an object`);
    return null;
  }
  for (const key of Object.keys(entry)) {
    if (!CASE_KEYS.includes(key)) errors.push(`${at}: unknown key '${key}'`);
  }
  const {
    agent,
    tool,
    arguments: args = {},
    caller = {},
    expect,
    injected,
    injectedInto = {},
    masked = {},
  } = entry;
  if (!isText(agent)) errors.push(`${at}: agent must be the name of an agent`);
  if (!isText(tool)) errors.push(`${at}: tool must be the name of a tool`);
  if (!isJsonObject(args)) errors.push(`${at}: arguments must be an object`);
  if (!isCaller(caller))
    errors.push(`${at}: caller holds user, a text, tenant, a text or a number, and claims, an object`);
  const error = expectationError(expect);
  if (error) errors.push(`${at}: ${error}`);
  if (!isJsonObject(injectedInto) || !Object.values(injectedInto).every(isJsonObject))
    errors.push(`${at}: injectedInto must hold a partial where per class`);
  const called = isJsonObject(args) ? args['class_name'] : undefined;
  if (injected !== undefined && !(isJsonObject(injected) && isText(called)))
    errors.push(`${at}: injected must be a partial where, of a call with a class_name`);
  if (!isJsonObject(masked) || !Object.values(masked).every(isText) || (!isText(called) && 'masked' in entry))
    errors.push(`${at}: masked must hold what is done with fields, of a call with a class_name`);
  const rule = entry['rule'] ?? `${String(agent)} ${String(tool)} ${JSON.stringify(args)}`;
  if (!isText(rule)) errors.push(`${at}: rule must be text`);
  return {
    rule: isText(rule) ? rule : at,
    agent: String(agent),
    tool: String(tool),
    arguments: args as PlainObject,
    caller: caller as CaseCaller,
    expect: expect as PolicyCase['expect'],
    injected: {
      ...(injectedInto as Record<string, PlainObject>),
      ...(isJsonObject(injected) && isText(called) && { [called]: injected }),
    },
    masked: masked as PolicyCase['masked'],
  };
}

function isCaller(value: unknown): value is CaseCaller {
  if (!isJsonObject(value)) return false;
  const { user, tenant, claims, ...others } = value;
  const isTenant = tenant === undefined || isText(tenant) || Number.isFinite(tenant);
  const isNamed = user === undefined || isText(user);
  return (
    isTenant && isNamed && (claims === undefined || isJsonObject(claims)) && Object.keys(others).length === 0
  );
}

function expectationError(expect: unknown): string | null {
  if (!isJsonObject(expect)) return 'expect must be { allowed: true } or { refused: code }';
  if ('allowed' in expect) {
    return expect['allowed'] === true && Object.keys(expect).length === 1
      ? null
      : 'expect.allowed can only be true, and stands alone; say refused: code for the opposite';
  }
  const unknown = Object.keys(expect).find((key) => !REFUSAL_KEYS.includes(key));
  if (unknown !== undefined) return `expect.${unknown} is not a known key`;
  if (!ERROR_CODES.some((code) => code === expect['refused']))
    return `expect.refused must be one of ${ERROR_CODES.join(', ')}`;
  if ('kind' in expect && !DENIAL_KINDS.some((kind) => kind === expect['kind']))
    return `expect.kind must be one of ${DENIAL_KINDS.join(', ')}`;
  const wrong = ['gate', 'field'].find((key) => key in expect && !isText(expect[key]));
  return wrong === undefined ? null : `expect.${wrong} must be text`;
}

/** The same simulated agent, called by somebody else. */
export function createSimulatedFor(agent: Agent, { user, tenant, claims }: CaseCaller): Agent {
  const { definition, identity, principal, tenantId } = agent;
  return new Agent({
    definition,
    identity,
    principal,
    tenantId: tenant ?? tenantId,
    ...(claims && { claims }),
    ...(user !== undefined && { user }),
  });
}

/** A case that was tried. */
export interface JudgedCase {
  readonly rule: string;
  /** Differences from its expectation; empty when it holds. */
  readonly faults: readonly string[];
}

/** Tries cases one after another. @param signal stops it; it then rejects */
export async function judgeCases(
  cases: readonly PolicyCase[],
  { agents, simulator }: { readonly agents: ReadonlyMap<string, Agent>; readonly simulator: Simulator },
  signal?: AbortSignal,
): Promise<JudgedCase[]> {
  const judged: JudgedCase[] = [];
  for (const policyCase of cases) {
    signal?.throwIfAborted();
    const { rule, agent: name, tool, arguments: args, caller } = policyCase;
    const agent = agents.get(name);
    const faults = agent
      ? judgeCase(policyCase, await simulator.simulate(createSimulatedFor(agent, caller), tool, args))
      : [`the configuration has no agent '${name}'`];
    judged.push({ rule, faults });
  }
  return judged;
}

/** The differences between a simulation and the expectation of a case; empty when none. */
export function judgeCase(policyCase: PolicyCase, outcome: SimulatedCall): string[] {
  const { expect, injected, masked } = policyCase;
  const className = canonicalClassName(String(policyCase.arguments['class_name']));
  const verdict = 'allowed' in expect ? findAllowedError(outcome) : refusalErrors(expect, outcome.refusal);
  return [
    ...verdict,
    ...Object.entries(injected).flatMap(([name, where]) => limitErrors(name, where, outcome)),
    ...Object.entries(masked).flatMap(([field, mask]) => maskErrors(className, field, mask, outcome)),
  ];
}

function findAllowedError({ refusal }: SimulatedCall): string[] {
  return refusal ? [`expected to be allowed, but ${result(refusal)}`] : [];
}

function refusalErrors(expected: ExpectedRefusal, refusal: Refusal | undefined): string[] {
  if (!refusal) return [`expected to be refused with ${expected.refused}, but allowed`];
  const found: ExpectedRefusal = {
    refused: refusal.code,
    gate: refusal.gate,
    ...(refusal.details?.kind && { kind: refusal.details.kind }),
    ...(refusal.details?.denied_field && { field: refusal.details.denied_field }),
  };
  return (['refused', 'gate', 'kind', 'field'] as const)
    .filter((key) => expected[key] !== undefined && expected[key] !== found[key])
    .map((key) => `expected ${key} '${expected[key]}', found '${found[key] ?? 'none'}': ${result(refusal)}`);
}

function maskErrors(
  className: string,
  field: string,
  requested: string,
  { masked }: SimulatedCall,
): string[] {
  const found = masked.find((one) => one.className === className && one.field === field)?.mask ?? 'none';
  return found === requested
    ? []
    : [`expected ${className}.${field} masked as '${requested}', found '${found}'`];
}

function limitErrors(name: string, requested: PlainObject, { injected }: SimulatedCall): string[] {
  const className = canonicalClassName(name);
  const limits = injected.filter((limit) => limit.className === className).map(({ where }) => where);
  return Object.entries(requested)
    .filter(([field, condition]) => !limits.some((where) => demands(where, field, condition)))
    .map(([field, condition]) => {
      const found =
        limits.length === 0 ? 'nothing' : limits.map((where) => JSON.stringify(where)).join(' and ');
      return `expected ${JSON.stringify({ [field]: condition })} injected into ${className}, found ${found}`;
    });
}

/** Whether every row that matches `where` meets the condition: it is at the top, or in a branch of an `$and`. */
function demands(where: PlainObject, field: string, condition: unknown): boolean {
  if (isDeepStrictEqual(where[field], condition)) return true;
  const branches = where['$and'];
  return (
    Array.isArray(branches) &&
    branches.some((branch) => isJsonObject(branch) && demands(branch, field, condition))
  );
}

function result({ code, gate, message, cause }: Refusal): string {
  return `refused by ${gate} with ${code} (${cause ?? message})`;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
