import { isJsonObject } from '#core';
import type { Where } from '#policy';
import { inexpressible } from '../connection/parse-errors.js';

/** `{ __type: … }`: a value, whatever members it has. */
function isTyped(value: Readonly<Record<string, unknown>>): boolean {
  return typeof value['__type'] === 'string';
}

export interface RowPointer {
  readonly className: string;
  readonly objectId: string;
}

export function isPointer(value: unknown): value is RowPointer {
  if (!isJsonObject(value) || value['__type'] !== 'Pointer') return false;
  return typeof value['className'] === 'string' && typeof value['objectId'] === 'string';
}

/**
 * How the rights that a constraint names (`$readableBy`, `$writableBy`) are enforced: with a session Parse Server applies
 * them itself, with the master key the query must contain them.
 */
type RightsEnforcer = 'server' | 'constraint';

export interface RestForm {
  readonly rightsAppliedBy: RightsEnforcer;
  /** Rows are only counted: near operators become circles. Default false. */
  readonly filterOnly?: boolean;
}

const FIELD = /^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$/;

const RIGHTS: ReadonlyMap<string, string> = new Map([
  ['$readableBy', '_rperm'],
  ['$writableBy', '_wperm'],
]);

/**
 * A text search needs a field in REST form; any field will do. It is placed inside `$and`: at the top level Parse Server
 * would create an index for that field, which no read may do.
 */
const WORDS = 'words';

type Conjunct = readonly [key: string, value: unknown];

/**
 * Converts a constraint to the form of Parse Server: only fields, and the operators listed below. Anything else is not sent,
 * so no operator can reach a class that was not checked.
 * @throws StoreError `unsupported`
 */
export function whereToRest(where: Where, form: RestForm): Record<string, unknown> {
  const flat = mergeWhere(where, form);
  return form.rightsAppliedBy === 'server' ? keepPermissions(flat) : flat;
}

/**
 * Parse Server adds its pointer permissions to a query of a session. Where the query has the column of one beside `$and` or
 * `$or`, it may drop these. Inside `$and`, with no such column beside it, everything is kept. By distance it sorts outside.
 */
function keepPermissions(flat: Record<string, unknown>): Record<string, unknown> {
  if (!Object.keys(flat).some((key) => key.startsWith('$'))) return flat;
  const beside: Record<string, unknown> = {};
  const inside: unknown[] = [];
  for (const [key, value] of Object.entries(flat)) {
    if (key === '$and' && Array.isArray(value)) inside.push(...(value as unknown[]));
    else if (key === 'objectId' || sortsByDistance(value)) beside[key] = value;
    else inside.push({ [key]: value });
  }
  return { ...beside, $and: inside };
}

const sortsByDistance = (value: unknown): boolean => isJsonObject(value) && '$nearSphere' in value;

function mergeWhere(where: Where, form: RestForm): Record<string, unknown> {
  const flat: Record<string, unknown> = {};
  const clashing: Record<string, unknown>[] = [];
  for (const [key, value] of conjuncts(where, form)) {
    if (Object.hasOwn(flat, key) || key === WORDS) clashing.push({ [key]: value });
    else flat[key] = value;
  }
  if (clashing.length === 0) return flat;
  const { $and, ...fields } = flat;
  const more = Array.isArray($and) ? ($and as unknown[]) : [];
  return { ...fields, $and: [...more, ...clashing] };
}

/** Whether Parse Server can evaluate the constraint. */
export function isExpressible(where: Where): boolean {
  try {
    whereToRest(where, { rightsAppliedBy: 'server' });
    return true;
  } catch {
    return false;
  }
}

/** Nested conjunctions are flattened to one level, because Parse Server recognises a query for one row by id only there. */
function conjuncts(where: Where, form: RestForm): Conjunct[] {
  return Object.entries(where).flatMap(([key, value]): Conjunct[] => {
    if (key === '$and') return branches(key, value).flatMap((branch) => conjuncts(branch, form));
    if (key === '$or' || key === '$nor')
      return [[key, branches(key, value).map((branch) => mergeWhere(branch, form))]];
    if (RIGHTS.has(key)) return rights(key, value, form);
    if (key === '$text') return [[WORDS, { $text: words(value) }]];
    if (!FIELD.test(key)) throw inexpressible(`'${key}' has no REST form`);
    return [[key, condition(value, form)]];
  });
}

function branches(key: string, value: unknown): Where[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isJsonObject))
    throw inexpressible(`${key} needs a list of constraints`);
  return value;
}

function rights(key: string, operand: unknown, { rightsAppliedBy }: RestForm): Conjunct[] {
  if (rightsAppliedBy === 'server') return [];
  const column = RIGHTS.get(key) as string;
  const principals = isJsonObject(operand) ? operand['principals'] : undefined;
  if (!Array.isArray(principals)) throw inexpressible(`${key} needs principals`);
  return [['$or', [{ [column]: { $in: principals } }, { [column]: { $exists: false } }]]];
}

function words(operand: unknown): unknown {
  const search = isJsonObject(operand) ? operand['$search'] : undefined;
  if (isJsonObject(search)) return { $search: wordOptions(search) };
  if (typeof search !== 'string') throw inexpressible('$text needs $search text');
  const { $search: _, ...options } = operand as Record<string, unknown>;
  return { $search: wordOptions({ $term: search, ...options }) };
}

const WORD_OPTIONS = new Set(['$term', '$language', '$caseSensitive', '$diacriticSensitive']);

function wordOptions(options: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(options)) {
    if (!WORD_OPTIONS.has(name) || typeof value === 'object')
      throw inexpressible(`'${name}' is no option of a search for words`);
  }
  return options;
}

function condition(value: unknown, { filterOnly }: RestForm): unknown {
  // Parse Server compares a whole list by an operator alone, and no whole object.
  if (Array.isArray(value)) return { $eq: plain(value) };
  if (!isJsonObject(value) || isTyped(value)) return plain(value);
  const keys = Object.keys(value);
  const operators = keys.filter((key) => key.startsWith('$'));
  if (operators.length === 0) throw inexpressible('a whole object');
  if (operators.length < keys.length) throw inexpressible('a condition mixes operators and fields');
  const constraint = filterOnly ? withoutDistanceOrder(value) : value;
  return Object.fromEntries(
    Object.keys(constraint).flatMap((operator) => restOperator(operator, constraint[operator])),
  );
}

type RestOperator = (operand: unknown) => readonly (readonly [string, unknown])[];

const LIST_OPERATORS = new Set(['$in', '$nin', '$all', '$containedBy']);

const same =
  (operator: string): RestOperator =>
  (operand) => {
    const values: unknown = LIST_OPERATORS.has(operator) ? operand : [operand];
    const isWhole = (value: unknown) => isJsonObject(value) && !isTyped(value);
    // Lists in a list are flattened there.
    if (
      Array.isArray(values) &&
      values.some((value) => isWhole(value) || (LIST_OPERATORS.has(operator) && Array.isArray(value)))
    )
      throw inexpressible(`${operator} with a whole object or list`);
    return [[operator, plain(operand)]];
  };

/** A geometry: one operator with plain values below it. */
function geometry(operand: unknown): unknown {
  if (!isJsonObject(operand)) throw inexpressible('an area without a shape');
  for (const [key, value] of Object.entries(operand)) {
    if (!SHAPES.has(key)) throw inexpressible(`'${key}' is no shape`);
    plain(value);
  }
  return operand;
}

/** Parse Server takes a GeoPoint there, and no GeoJSON. */
function toPointForm(operand: unknown): unknown {
  const shape = isJsonObject(operand) ? operand['$geometry'] : undefined;
  if (!isJsonObject(shape) || shape['type'] !== 'Point' || !Array.isArray(shape['coordinates']))
    return operand;
  const [longitude, latitude] = shape['coordinates'] as unknown[];
  return { $point: { __type: 'GeoPoint', latitude, longitude } };
}

const SHAPES = new Set(['$box', '$centerSphere', '$polygon', '$point']);

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
  '$containedBy',
  '$exists',
  '$regex',
  '$nearSphere',
  '$maxDistance',
  '$maxDistanceInMiles',
  '$maxDistanceInKilometers',
  '$maxDistanceInRadians',
] as const;

const OPERATORS: ReadonlyMap<string, RestOperator> = new Map<string, RestOperator>([
  ...SAME.map((operator) => [operator, same(operator)] as const),
  ['$near', same('$nearSphere')],
  ['$containsAll', same('$all')],
  // Parse Server refuses empty `$options`.
  ['$options', (operand) => (operand === '' ? [] : [['$options', operand]])],
  [
    '$geoWithin',
    (operand) => [[isJsonObject(operand) && '$box' in operand ? '$within' : '$geoWithin', geometry(operand)]],
  ],
  ['$geoIntersects', (operand) => [['$geoIntersects', geometry(toPointForm(operand))]]],
]);

/** Parse Server looks for subqueries at any depth, also inside values: a value may contain no operator. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) value.forEach(plain);
  else if (isJsonObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      if (key.startsWith('$')) throw inexpressible(`'${key}' inside a value`);
      plain(member);
    }
  }
  return value;
}

function restOperator(operator: string, operand: unknown): readonly (readonly [string, unknown])[] {
  const restForm = OPERATORS.get(operator);
  if (!restForm) throw inexpressible(`operator '${operator}' has no REST form`);
  return restForm(operand);
}

/** Earth radii that Parse uses for conversions. */
const PER_RADIAN: Readonly<Record<string, number>> = {
  $maxDistance: 1,
  $maxDistanceInRadians: 1,
  $maxDistanceInKilometers: 6371,
  $maxDistanceInMiles: 3958.8,
};

/** Half the circumference: every point. */
const EVERYWHERE = Math.PI;

/** The same area without its order, which a count can neither use nor express: the circle around the point. */
function withoutDistanceOrder(
  constraint: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const point = constraint['$nearSphere'] ?? constraint['$near'];
  if (point === undefined) return constraint;
  const distances = Object.entries(constraint).flatMap(([name, distance]) => {
    const unit = PER_RADIAN[name];
    return unit !== undefined && typeof distance === 'number' ? [distance / unit] : [];
  });
  const others = Object.entries(constraint).filter(
    ([name]) => name !== '$nearSphere' && name !== '$near' && !Object.hasOwn(PER_RADIAN, name),
  );
  return {
    ...Object.fromEntries(others),
    $geoWithin: { $centerSphere: [point, Math.min(...distances, EVERYWHERE)] },
  };
}
