import { isJsonObject } from '#core';
import type { Where } from '#policy';

/** Comparisons that mean the same to a vector index as to the database. */
const CARRIED_OPERATORS = new Set(['$eq', '$in', '$gt', '$gte', '$lt', '$lte']);

/** A constraint, divided by what a vector index can apply before it ranks rows. */
interface CarriedFilter {
  /** It can filter on all of these columns. */
  readonly early: readonly Where[];
  /** Whether there is anything else, which only removes rows that were ranked. */
  readonly isPartial: boolean;
}

/** @param filterFields the columns that the index was built to filter on */
export function splitFilter(where: Where, filterFields: readonly string[]): CarriedFilter {
  const conditions = listConditions(where);
  const early = conditions.filter((condition) =>
    Object.entries(condition).every(([name, operand]) => filterFields.includes(name) && isCarried(operand)),
  );
  return { early, isPartial: early.length < conditions.length };
}

/** Each condition that a row must meet, one column in each. */
function listConditions(where: Where): Where[] {
  return Object.entries(where).flatMap(([key, operand]) =>
    key === '$and' && Array.isArray(operand)
      ? (operand as Where[]).flatMap(listConditions)
      : [{ [key]: operand } as Where],
  );
}

function isCarried(operand: unknown): boolean {
  if (!isJsonObject(operand)) return isValue(operand);
  const members = Object.entries(operand);
  if (members.some(([key]) => key.startsWith('$')))
    return members.every(
      ([key, value]) =>
        CARRIED_OPERATORS.has(key) && (Array.isArray(value) ? value.every(isValue) : isValue(value)),
    );
  return isValue(operand);
}

/** Texts, numbers, truth values, dates and pointers: values of one kind, which an index holds. */
function isValue(value: unknown): boolean {
  if (isJsonObject(value)) return value['__type'] === 'Date' || value['__type'] === 'Pointer';
  return ['string', 'number', 'boolean'].includes(typeof value);
}
