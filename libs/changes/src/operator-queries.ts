import { refuse } from '#core';
import type { ChangeSet, ChangeSetQuery } from '#data';

/** Whose sets an operator looks for. Every member narrows. */
export interface OperatorQuery {
  /** Name of the agent whose sets they are. */
  readonly agent?: string;
  /** A row of theirs was written by the credential of this name. */
  readonly keyName?: string;
  /** State of the sets. `waiting`: open or submitted. `undone`: applied, and taken back since. */
  readonly state?: ChangeSet['state'] | 'waiting' | 'undone';
  /** A row of this class is among those that the operator may read. */
  readonly className?: string;
  /** Applied, or where they are not applied opened, at this time or later, in milliseconds since 1970. */
  readonly since?: number;
  /** The same before this time. */
  readonly until?: number;
  /** Default 50. */
  readonly limit?: number;
}

/**
 * What an operator takes back: one set, or everything that an agent wrote within a time. Without `until` it has no end. With `keyName`
 * only the rows that the credential of this name wrote.
 */
export type UndoTarget =
  | { readonly change_set: string }
  | {
      readonly agent: string;
      readonly keyName?: string;
      readonly since: number;
      readonly until?: number;
    };

const isText = (given: unknown): boolean => typeof given === 'string';

type Rule = readonly [is: (given: unknown) => boolean, what: string];

const TEXT: Rule = [isText, 'a text'];
const TIME: Rule = [
  (given) => typeof given === 'number' && Number.isFinite(new Date(given).getTime()),
  'a time in milliseconds since 1970',
];

const OF_A_TIME: Readonly<Record<string, Rule>> = { agent: TEXT, keyName: TEXT, since: TIME, until: TIME };
const OF_A_SET: Readonly<Record<string, Rule>> = { change_set: TEXT };
const OF_A_LIST: Readonly<Record<string, Rule>> = {
  ...OF_A_TIME,
  className: TEXT,
  state: TEXT,
  limit: [(given) => Number.isSafeInteger(given) && Number(given) > 0, 'a whole number above 0'],
};

/** @throws Refused for what a misspelt member, or a value of another kind, would make of it: everything */
export function assertQuery(query: OperatorQuery): void {
  assertMembers(query, OF_A_LIST);
}

/** @throws Refused as `assertQuery` does, and for a target without its bounds */
export function assertTarget(target: UndoTarget): void {
  const isSet = 'change_set' in target;
  assertMembers(target, isSet ? OF_A_SET : OF_A_TIME);
  const missing = (isSet ? ['change_set'] : ['agent', 'since']).find(
    (name) => (target as Readonly<Record<string, unknown>>)[name] === undefined,
  );
  if (missing !== undefined)
    throw refuse.invalidArgument(`${missing} is missing: give change_set alone, or agent and since`);
}

function assertMembers(given: object, rules: Readonly<Record<string, Rule>>): void {
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (!rule)
      throw refuse.invalidArgument(`unknown member '${name}', known: ${Object.keys(rules).join(', ')}`);
    const [is, what] = rule;
    if (value !== undefined && !is(value)) throw refuse.invalidArgument(`${name} must be ${what}`);
  }
}

export function toStates(
  state: NonNullable<OperatorQuery['state']>,
): Pick<ChangeSetQuery, 'states' | 'isUndone'> {
  if (state === 'waiting') return { states: ['open', 'submitted'] };
  return state === 'undone' ? { states: ['applied'], isUndone: true } : { states: [state] };
}
