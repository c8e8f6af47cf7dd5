import type { Where } from '#policy';
import { inexpressible } from '../connection/parse-faults.js';
import { isPlainObject, isTyped } from './plain-value.js';

/**
 * Who keeps to the rights that a constraint names (`$readableBy`, `$writableBy`): with a session Parse Server does by
 * itself, with the master key it must be asked to.
 */
export type RightsKeeper = 'server' | 'constraint';

const FIELD = /^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$/;

const RIGHTS: ReadonlyMap<string, string> = new Map([
  ['$readableBy', '_rperm'],
  ['$writableBy', '_wperm'],
]);

/** A search for words stands under a field in REST form, whichever it is. */
const WORDS = 'words';

type Conjunct = readonly [key: string, value: unknown];

/**
 * A constraint as Parse Server takes it: only fields, and operators of the list below. Whatever is not known here is not
 * sent, so no operator can reach a class that nobody judged.
 * @throws StoreError `unsupported`
 */
export function whereToRest(where: Where, keeper: RightsKeeper): Record<string, unknown> {
  const flat: Record<string, unknown> = {};
  const clashing: Record<string, unknown>[] = [];
  for (const [key, value] of conjuncts(where, keeper)) {
    if (Object.hasOwn(flat, key)) clashing.push({ [key]: value });
    else flat[key] = value;
  }
  if (clashing.length === 0) return flat;
  const { $and, ...fields } = flat;
  const more = Array.isArray($and) ? ($and as unknown[]) : [];
  return { ...fields, $and: [...more, ...clashing] };
}

/** Whether Parse Server can be asked for this. */
export function isExpressible(where: Where): boolean {
  try {
    whereToRest(where, 'server');
    return true;
  } catch {
    return false;
  }
}

/** Nested conjunctions come down to one level, which is where Parse Server sees that a query asks for one row by id. */
function conjuncts(where: Where, keeper: RightsKeeper): Conjunct[] {
  return Object.entries(where).flatMap(([key, value]): Conjunct[] => {
    if (key === '$and') return branches(key, value).flatMap((branch) => conjuncts(branch, keeper));
    if (key === '$or' || key === '$nor')
      return [[key, branches(key, value).map((branch) => whereToRest(branch, keeper))]];
    if (RIGHTS.has(key)) return rights(key, value, keeper);
    if (key === '$text') return [[WORDS, { $text: words(value) }]];
    if (!FIELD.test(key)) throw inexpressible(`'${key}' has no REST form`);
    return [[key, condition(value)]];
  });
}

function branches(key: string, value: unknown): Where[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isPlainObject))
    throw inexpressible(`${key} needs a list of constraints`);
  return value;
}

function rights(key: string, operand: unknown, keeper: RightsKeeper): Conjunct[] {
  if (keeper === 'server') return [];
  const column = RIGHTS.get(key) as string;
  const principals = isPlainObject(operand) ? operand['principals'] : undefined;
  if (!Array.isArray(principals)) throw inexpressible(`${key} needs principals`);
  return [['$or', [{ [column]: { $in: principals } }, { [column]: { $exists: false } }]]];
}

function words(operand: unknown): unknown {
  const search = isPlainObject(operand) ? operand['$search'] : undefined;
  if (isPlainObject(search)) return { $search: search };
  if (typeof search !== 'string') throw inexpressible('$text needs $search text');
  const { $search: _, ...options } = operand as Record<string, unknown>;
  return { $search: { $term: search, ...options } };
}

function condition(value: unknown): unknown {
  if (!isPlainObject(value) || isTyped(value)) return value;
  const keys = Object.keys(value);
  const operators = keys.filter((key) => key.startsWith('$'));
  if (operators.length === 0) return value;
  if (operators.length < keys.length) throw inexpressible('a condition mixes operators and fields');
  return Object.fromEntries(operators.flatMap((operator) => restOperator(operator, value[operator])));
}

type RestForm = (operand: unknown) => readonly (readonly [string, unknown])[];

const same =
  (operator: string): RestForm =>
  (operand) => [[operator, operand]];

const SAME = [
  '$eq',
  '$ne',
  '$lt',
  '$lte',
  '$gt',
  '$gte',
  '$in',
  '$nin',
  '$all',
  '$exists',
  '$regex',
  '$nearSphere',
  '$maxDistance',
  '$maxDistanceInMiles',
  '$maxDistanceInKilometers',
  '$maxDistanceInRadians',
  '$geoIntersects',
] as const;

const OPERATORS: ReadonlyMap<string, RestForm> = new Map<string, RestForm>([
  ...SAME.map((operator) => [operator, same(operator)] as const),
  ['$near', same('$nearSphere')],
  ['$containsAll', same('$all')],
  // Parse Server refuses empty options.
  ['$options', (operand) => (operand === '' ? [] : [['$options', operand]])],
  [
    '$geoWithin',
    (operand) => [[isPlainObject(operand) && '$box' in operand ? '$within' : '$geoWithin', operand]],
  ],
]);

function restOperator(operator: string, operand: unknown): readonly (readonly [string, unknown])[] {
  const form = OPERATORS.get(operator);
  if (!form) throw inexpressible(`operator '${operator}' has no REST form`);
  return form(operand);
}
