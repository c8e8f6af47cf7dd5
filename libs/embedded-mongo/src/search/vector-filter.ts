import { Binary } from 'bson';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { typeName } from '../bson/type-name.js';
import { searchFault } from '../errors.js';
import type { SearchIndex } from './search-index.js';

const COMPARISONS = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte']);
const GROUPS = new Set(['$and', '$or', '$nor']);
const NUMBERS = ['int', 'long', 'double'];
const OTHERS = ['string', 'bool', 'objectId', 'date', 'null'];

/**
 * A filter as an index of vectors answers it: null is a value, and not what is missing. Errors: 8 for conditions and
 * values that no index has, and for paths that a declared one does not hold.
 */
export function indexedFilter(filter: Document, index: SearchIndex | undefined): Document {
  const parts = Object.entries(filter).map(([name, value]): Document => {
    if (GROUPS.has(name)) return { [name]: (value as Document[]).map((one) => indexedFilter(one, index)) };
    if (name.startsWith('$')) throw searchFault(`"filter" cannot have ${name}`);
    if (index && !index.filters.includes(name))
      throw searchFault(`the path ${name} is not indexed as a filter`);
    const conditions = isDocument(value) && firstKey(value)?.startsWith('$') ? value : { $eq: value };
    checkConditions(conditions);
    return { [name]: conditions['$eq'] === null ? { $exists: true, ...conditions } : conditions };
  });
  return parts.length === 0 ? {} : { $and: parts };
}

function checkConditions(conditions: Document): void {
  for (const [condition, operand] of Object.entries(conditions)) {
    if (condition === '$not' && isDocument(operand)) checkConditions(operand);
    else if (!takes(condition, operand)) throw searchFault(`"filter" cannot have this value of ${condition}`);
  }
}

function takes(condition: string, operand: unknown): boolean {
  if (condition === '$exists') return typeof operand === 'boolean';
  if (COMPARISONS.has(condition)) return kindOf(operand) !== undefined;
  if ((condition !== '$in' && condition !== '$nin') || !Array.isArray(operand)) return false;
  const [kind, ...others] = new Set(operand.map(kindOf));
  return kind !== undefined && kind !== 'null' && others.length === 0;
}

/** What an index can hold; numbers of all kinds but decimals are one. */
function kindOf(value: unknown): string | undefined {
  const name = typeName(value);
  if (value instanceof Binary) return value.sub_type === Binary.SUBTYPE_UUID ? name : undefined;
  return NUMBERS.includes(name) ? 'number' : OTHERS.find((known) => known === name);
}
