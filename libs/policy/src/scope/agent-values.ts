import { type Agent, refuse } from '#core';
import { isPlainObject, isPointer, type Where } from '../model/where.js';

/** `{ $agent: NAME }` stands for a value of the agent in a constraint of the operator. */
const MARK = '$agent';

/** A text, a number or a boolean: a value of an agent is data, and never an operator or an object. */
type AgentValue = string | number | boolean;

/** Returns the value of a name. @throws Refused */
type ValueOf = (name: unknown) => AgentValue;

/** Stands for a value of an agent while there is none; `WhereOptions.unchecked` compares it with columns of every type. */
export const SAMPLE = '2000-01-01';

const CLAIM = 'claims.';

/** Operators that compare with one value, and those that compare with a list. */
const COMPARING = new Set(['$eq', '$ne', '$lt', '$lte', '$gt', '$gte']);
const LISTING = new Set(['$in', '$nin', '$all', '$containedIn', '$containsAll']);

function isMark(value: unknown): value is { readonly [MARK]: unknown } {
  return isPlainObject(value) && Object.hasOwn(value, MARK) && Object.keys(value).length === 1;
}

/** Whether a constraint compares with values of the agent, anywhere. */
export function namesAgentValues(constraint: unknown): boolean {
  if (Array.isArray(constraint)) return constraint.some(namesAgentValues);
  if (!isPlainObject(constraint)) return false;
  return Object.entries(constraint).some(([key, value]) => key === MARK || namesAgentValues(value));
}

/** The names of the values of an agent that a constraint compares with. */
export function listAgentValues(constraint: unknown): readonly string[] {
  if (Array.isArray(constraint)) return constraint.flatMap(listAgentValues);
  if (!isPlainObject(constraint)) return [];
  return Object.entries(constraint).flatMap(([key, value]) =>
    key === MARK ? [String(value)] : listAgentValues(value),
  );
}

/** The value of the agent itself: its rights in the database are not asked. Null: it has none. */
export const findOwnValue = (agent: Agent, name: string): AgentValue | null => agentValue(agent, null, name);

/** A constraint with the values of an agent in their places. */
export interface FilledConstraint {
  readonly where: Where;
  /** The texts that were filled in: they are never read as a form of something else, such as `Class$id`. */
  readonly literals: ReadonlySet<string>;
}

/**
 * Puts the values of the agent into a constraint: the only place that does.
 * @param userId the Parse user whose rights the agent has; null: none
 * @throws Refused where the agent does not have one of them: a filter that compares with nothing would match other rows
 */
export function withAgentValues(
  constraint: Where,
  agent: Agent,
  userId: string | null,
  className: string,
): FilledConstraint {
  const literals = new Set<string>();
  const where = fillConstraint(constraint, (name) => {
    const value = agentValue(agent, userId, readName(name));
    if (value === null) throw refuse.agentValueUnset(className, `${MARK}: ${readName(name)} is not set`);
    if (typeof value === 'string') literals.add(value);
    return value;
  });
  return { where, literals };
}

/** The constraint with `SAMPLE` in their places, to be checked before there is an agent. @throws Refused `invalid_query` */
export function withSampleValues(constraint: Where): Where {
  return fillConstraint(constraint, (name) => {
    readName(name);
    return SAMPLE;
  });
}

/** @throws Refused `invalid_query` */
function readName(name: unknown): string {
  if (name === 'user' || name === 'tenant') return name;
  if (typeof name === 'string' && name.startsWith(CLAIM) && name.length > CLAIM.length) return name;
  throw refuse.invalidQuery(`${MARK} takes user, tenant or claims.NAME`);
}

function agentValue(agent: Agent, userId: string | null, name: string): AgentValue | null {
  if (name === 'tenant') return usable(agent.tenantId);
  if (name === 'user') return usable(findUser(agent, userId));
  return usable(readClaim(agent, name.slice(CLAIM.length)));
}

/** Blank texts and numbers that are none count as missing. */
function usable(value: unknown): AgentValue | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  return typeof value === 'boolean' ? value : null;
}

/** The Parse user with whose rights the agent reads; without one, the user whom the token or the application names. */
function findUser(agent: Agent, userId: string | null): unknown {
  const { kind } = agent.identity;
  if (kind === 'aclUser' || kind === 'sessionToken') return userId;
  return claimAt(agent.claims, ['sub']) ?? agent.user;
}

/** The claim of that whole name; without one, the claim inside others that the dots lead to. */
function readClaim({ claims }: Agent, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : claimAt(claims, name.split('.'));
}

/** Own members only: every object has a `constructor`. Undefined: there is none. */
export function claimAt(claims: unknown, path: readonly string[]): unknown {
  let value = claims;
  for (const name of path) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

/** Marks in other places than these stay, and translating the constraint refuses them. */
function fillConstraint(constraint: Where, valueOf: ValueOf): Where {
  return mapFilter(constraint, (key, value) => {
    if (Array.isArray(value) && (key === '$and' || key === '$or' || key === '$nor'))
      return value.map((branch: unknown) =>
        isPlainObject(branch) ? fillConstraint(branch, valueOf) : branch,
      );
    if (key === '$relatedTo' && isPlainObject(value))
      return mapFilter(value, (member, one) => (member === 'object' ? fillCompared(one, valueOf) : one));
    return key.startsWith('$') ? value : condition(value, valueOf);
  });
}

function condition(value: unknown, valueOf: ValueOf): unknown {
  if (isMark(value) || isPointer(value) || !isPlainObject(value)) return fillCompared(value, valueOf);
  return mapFilter(value, (operator, operand) => {
    if (COMPARING.has(operator)) return fillCompared(operand, valueOf);
    if (LISTING.has(operator) && Array.isArray(operand))
      return operand.map((one) => fillCompared(one, valueOf));
    if (operator === '$inQuery' || operator === '$notInQuery') return query(operand, valueOf);
    if ((operator === '$select' || operator === '$dontSelect') && isPlainObject(operand))
      return mapFilter(operand, (member, one) => (member === 'query' ? query(one, valueOf) : one));
    // A path written as objects: { meta: { owner: … } }.
    return operator.startsWith('$') ? operand : condition(operand, valueOf);
  });
}

function query(operand: unknown, valueOf: ValueOf): unknown {
  if (!isPlainObject(operand)) return operand;
  return mapFilter(operand, (member, one) =>
    member === 'where' && isPlainObject(one) ? fillConstraint(one, valueOf) : one,
  );
}

/** A value that is compared: a mark, or a pointer whose id is one. */
function fillCompared(value: unknown, valueOf: ValueOf): unknown {
  if (isMark(value)) return valueOf(value[MARK]);
  if (!isPointer(value) || !isMark(value['objectId'])) return value;
  return { ...value, objectId: String(valueOf(value['objectId'][MARK])) };
}

function mapFilter(value: Where, map: (key: string, value: unknown) => unknown): Where {
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, map(key, one)]));
}
