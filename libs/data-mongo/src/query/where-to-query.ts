import { setOwn } from '#core';
import type { Document } from 'mongodb';
import { untranslatable } from '../errors.js';
import { type ClassStorage, type ColumnRef, isPointer } from '../storage/class-storage.js';
import { isPlainObject, isTyped } from '#policy';
import { toCoordinates, inQuery } from '../storage/parse-values.js';
import { chooseBound, listBounds } from '../storage/stored-forms.js';

type ColumnResolver = (path: string) => ColumnRef;

/** Equality with every form in which documents may hold a value. */
function equalityToQuery(value: unknown, ref: ColumnRef, operator: '$eq' | '$ne', form: QueryForm): Document {
  const forms = ref.form.listForms(value, ref, isNegated(operator, form));
  if (forms.length === 1) return { [operator]: forms[0] };
  return { [operator === '$eq' ? '$in' : '$nin']: forms };
}

function operandsToStorage(values: unknown, ref: ColumnRef, operator: string, form: QueryForm): unknown[] {
  if (!Array.isArray(values)) throw untranslatable(`${operator} needs an array`);
  return ref.form.operandsToStorage(values, ref, isNegated(operator, form));
}

/** Whether rows that match the operand are withheld. */
const isNegated = (operator: string, { negated = false }: QueryForm): boolean =>
  (operator === '$ne' || operator === '$nin') !== negated;

const comparesPointer = (operand: unknown): boolean =>
  isPointer(operand) || (Array.isArray(operand) && operand.some(isPointer));

/** Whether a constraint compares with pointers: what makes an undeclared name a pointer column. */
function mentionsPointer(constraint: unknown): boolean {
  if (comparesPointer(constraint)) return true;
  if (typeof constraint !== 'object' || constraint === null || isTyped(constraint)) return false;
  return ['$eq', '$ne', '$in', '$nin'].some((operator) =>
    comparesPointer((constraint as Record<string, unknown>)[operator]),
  );
}

interface QueryForm {
  readonly resolve: ColumnResolver;
  /** A filter for rows that give one of the principals a right. */
  readonly rights: ClassStorage['rightsToQuery'];
  /** The database only filters with the query (counts, `$match`): near operators become circles. Default false. */
  readonly filterOnly?: boolean;
  /** Within `$nor` or `$not`. Default false. */
  readonly negated?: boolean;
  /** Translates `$expr`; absent where expressions are not permitted. */
  readonly expression?: (expression: unknown) => unknown;
}

/** A filter over stored rows of one class. @throws StoreError `invalid_query` */
export function classWhereToQuery(
  where: Readonly<Record<string, unknown>>,
  storage: ClassStorage,
  filterOnly = false,
): Document {
  const rights = (right: 'read' | 'write', principals: readonly string[]) =>
    storage.rightsToQuery(right, principals);
  return whereToQuery(where, { resolve: (path) => storage.resolve(path), rights, filterOnly });
}

/** A Parse constraint as a MongoDB filter. @throws StoreError `invalid_query` */
export function whereToQuery(where: Readonly<Record<string, unknown>>, form: QueryForm): Document {
  const keys = Object.keys(where);
  const [only] = keys;
  if (only !== undefined && keys.length === 1) return conditionToQuery(only, where[only], form);
  return joinConditions(keys.map((key) => conditionToQuery(key, where[key], form)));
}

/**
 * Conditions on different columns share one object; a column that occurs twice needs `$and`, because the last entry would
 * replace the first.
 */
function joinConditions(conditions: readonly Document[]): Document {
  const query: Document = {};
  const rest: Document[] = [];
  for (const condition of conditions) {
    const clashes = Object.keys(condition).some((key) => Object.hasOwn(query, key));
    if (clashes) rest.push(condition);
    else for (const [key, value] of Object.entries(condition)) setOwn(query, key, value);
  }
  if (rest.length === 0) return query;
  return { $and: [query, ...rest] };
}

function conditionToQuery(key: string, value: unknown, form: QueryForm): Document {
  if (key === '$nor') return { $nor: branches(key, value, negate(form)) };
  if (key === '$and' || key === '$or') return { [key]: branches(key, value, form) };
  if (key === '$text') return textToQuery(value);
  if (key === '$expr' && form.expression) return { $expr: form.expression(value) };
  if (key === '$comment') return {};
  const right = RIGHTS.get(key);
  if (right !== undefined) return form.rights(right, readPrincipals(key, value));
  if (key.startsWith('$')) throw untranslatable(`'${key}' cannot stand at the top of a query`);
  if (isConstraint(value) && '$text' in value) return textToQuery(value['$text']);
  const named = form.resolve(key);
  const ref = named.undeclared && mentionsPointer(value) ? named.form.asPointerColumn(named) : named;
  if (isConstraint(value)) return constraintToQuery(value, ref, form);
  const forms = ref.form.listForms(value, ref, isNegated('$eq', form));
  return { [ref.column]: forms.length === 1 ? forms[0] : { $in: forms } };
}

const negate = (form: QueryForm): QueryForm => ({ ...form, negated: !form.negated });

/** Only governed access adds these operators: validation removes operators of such names from a caller's constraint. */
const RIGHTS: ReadonlyMap<string, 'read' | 'write'> = new Map([
  ['$readableBy', 'read'],
  ['$writableBy', 'write'],
]);

function readPrincipals(key: string, operand: unknown): readonly string[] {
  const principals = isPlainObject(operand) ? operand['principals'] : undefined;
  if (!Array.isArray(principals) || !principals.every((name) => typeof name === 'string'))
    throw untranslatable(`${key} needs principals`);
  return principals;
}

function branches(key: string, value: unknown, form: QueryForm): Document[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isPlainObject))
    throw untranslatable(`${key} needs a list of constraints`);
  return value.map((branch) => whereToQuery(branch, form));
}

/** An object of operators, in contrast to an object to compare with. */
function isConstraint(value: unknown): value is Record<string, unknown> {
  if (!isPlainObject(value) || isTyped(value)) return false;
  const operators = Object.keys(value).filter((key) => key.startsWith('$')).length;
  if (operators > 0 && operators < Object.keys(value).length)
    throw untranslatable('a constraint mixes operators and fields');
  return operators > 0;
}

function textToQuery(operand: unknown): Document {
  const search = isPlainObject(operand) ? operand['$search'] : undefined;
  const options = isPlainObject(search) ? search : (operand as Record<string, unknown>);
  const term = isPlainObject(search) ? search['$term'] : search;
  if (typeof term !== 'string') throw untranslatable('$text needs $search text');
  const query: Document = { $search: term };
  for (const option of ['$language', '$caseSensitive', '$diacriticSensitive']) {
    if (options[option] !== undefined) query[option] = options[option];
  }
  return { $text: query };
}

type OperatorTranslator = (operand: unknown, ref: ColumnRef, form: QueryForm) => Document;

const listOperator =
  (operator: string): OperatorTranslator =>
  (operand, ref, form) => ({ [operator]: operandsToStorage(operand, ref, operator, form) });

const rangeOperator =
  (operator: string): OperatorTranslator =>
  (operand, ref) => ({ [operator]: chooseBound(ref.form.listForms(operand, ref, false), operator) });

/** Members of array columns are stored in nested form, whatever the path. */
const memberList: OperatorTranslator = (operand, ref, form) => {
  const member = { ...ref, nested: true };
  if (!Array.isArray(operand)) throw untranslatable('$all needs an array');
  const values = operandsToStorage(operand, member, '$all', form);
  if (values.length === operand.length) return { $all: values };
  return { $all: operand.map((one) => ({ $elemMatch: equalityToQuery(one, member, '$eq', form) })) };
};

const verbatim =
  (operator: string): OperatorTranslator =>
  (operand) => ({ [operator]: operand });

const OPERATORS: Readonly<Record<string, OperatorTranslator>> = {
  $eq: (operand, ref, form) => equalityToQuery(operand, ref, '$eq', form),
  $ne: (operand, ref, form) => equalityToQuery(operand, ref, '$ne', form),
  $lt: rangeOperator('$lt'),
  $lte: rangeOperator('$lte'),
  $gt: rangeOperator('$gt'),
  $gte: rangeOperator('$gte'),
  $in: listOperator('$in'),
  $nin: listOperator('$nin'),
  $all: memberList,
  $containsAll: memberList,
  $exists: verbatim('$exists'),
  $regex: verbatim('$regex'),
  $options: verbatim('$options'),
  $size: verbatim('$size'),
  $type: verbatim('$type'),
  $mod: verbatim('$mod'),
  $geoWithin: withinToQuery,
  $within: withinToQuery,
  $geoIntersects: intersectsToQuery,
  $not: (operand, ref, form) => ({ $not: operatorsToQuery(operand, ref, negate(form)) }),
  $elemMatch: (operand, ref, form) => ({ $elemMatch: elementToQuery(operand, ref, form) }),
};

function constraintToQuery(constraint: Record<string, unknown>, ref: ColumnRef, form: QueryForm): Document {
  const { $containedIn, $containedBy, ...written } = constraint;
  // Parse holds a value in one form.
  const [others, apart] = ref.form.pointersAreIds ? splitByForms(written, ref, form) : [written, []];
  const conditions: Document[] = apart.flatMap((one) => formsToQuery(one, ref, form));
  if (Object.keys(others).length > 0) conditions.push({ [ref.column]: operatorsToQuery(others, ref, form) });
  if ($containedBy !== undefined) conditions.push(subsetToQuery($containedBy, ref, form));
  if ($containedIn !== undefined) {
    const scalar = () => ({
      [ref.column]: { $in: operandsToStorage($containedIn, ref, '$containedIn', form) },
    });
    conditions.push(ref.field?.type === 'Array' ? subsetToQuery($containedIn, ref, form) : scalar());
  }
  return joinConditions(conditions);
}

type Comparison = readonly [operator: string, operand: unknown];

const RANGES: ReadonlySet<string> = new Set(['$lt', '$lte', '$gt', '$gte']);
const COMPARES_EACH: ReadonlySet<string> = new Set(['$in', '$nin', '$all', '$containsAll']);

/** Comparisons with values that documents may hold in several forms, and the rest: the former would have one operator twice. */
function splitByForms(
  constraint: Record<string, unknown>,
  ref: ColumnRef,
  form: QueryForm,
): [others: Record<string, unknown>, apart: Comparison[]] {
  const isApart = ([operator, operand]: Comparison): boolean => {
    if (operator === '$not')
      return isPlainObject(operand) && splitByForms(operand, ref, negate(form))[1].length > 0;
    if (COMPARES_EACH.has(operator))
      return (
        Array.isArray(operand) && operandsToStorage(operand, ref, operator, form).length > operand.length
      );
    if (operator !== '$eq' && operator !== '$ne' && !RANGES.has(operator)) return false;
    const forms = ref.form.listForms(operand, ref, !RANGES.has(operator) && isNegated(operator, form));
    return forms.length > 1;
  };
  const entries = Object.entries(constraint);
  const apart = entries.filter(isApart);
  return [Object.fromEntries(entries.filter((entry) => !apart.includes(entry))), apart];
}

/** A comparison with every form of its values; each value that a list must hold is a condition of its own. */
function formsToQuery([operator, operand]: Comparison, ref: ColumnRef, form: QueryForm): Document[] {
  const equals = (value: unknown, one: '$eq' | '$ne') => ({
    [ref.column]: equalityToQuery(value, ref, one, form),
  });
  if (operator === '$eq' || operator === '$ne') return [equals(operand, operator)];
  if (operator === '$in' || operator === '$nin')
    return [{ [ref.column]: { [operator]: operandsToStorage(operand, ref, operator, form) } }];
  if (RANGES.has(operator)) return [rangeToQuery(operator, operand, ref)];
  if (operator === '$not')
    return [{ $nor: [constraintToQuery(operand as Record<string, unknown>, ref, negate(form))] }];
  return (operand as unknown[]).map((value) => equals(value, '$eq'));
}

function rangeToQuery(operator: string, operand: unknown, ref: ColumnRef): Document {
  const bounds = listBounds(ref.form.listForms(operand, ref, false), operator);
  const conditions = bounds.map((bound) => ({ [ref.column]: { [operator]: bound } }));
  return conditions.length === 1 ? (conditions[0] as Document) : { $or: conditions };
}

/** Every element is one of the listed values; a row without the array matches. */
function subsetToQuery(list: unknown, ref: ColumnRef, form: QueryForm): Document {
  const values = operandsToStorage(list, { ...ref, nested: true }, '$containedIn', form);
  return { $nor: [{ [ref.column]: { $elemMatch: { $nin: values } } }] };
}

function operatorsToQuery(constraint: unknown, ref: ColumnRef, form: QueryForm): Document {
  if (!isPlainObject(constraint)) throw untranslatable('an operator object is expected');
  const query: Document = {};
  for (const [operator, operand] of Object.entries(constraint)) {
    if (Object.hasOwn(UNITS_PER_RADIAN, operator)) continue;
    if (operator === '$nearSphere' || operator === '$near') {
      Object.assign(query, nearToQuery(constraint, form.filterOnly ?? false));
      continue;
    }
    const translate = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (!translate) throw untranslatable(`unknown operator '${operator}'`);
    const translated = translate(operand, ref, form);
    if (Object.keys(translated).some((key) => Object.hasOwn(query, key)))
      throw untranslatable('one value is compared twice: join the conditions with $and');
    Object.assign(query, translated);
  }
  return query;
}

/** Elements have names of their own, which are stored as written. */
function elementToQuery(operand: unknown, ref: ColumnRef, form: QueryForm): Document {
  if (!isPlainObject(operand)) throw untranslatable('$elemMatch needs an object');
  const element = { ...ref, nested: true };
  const keys = Object.keys(operand);
  const logical = keys.every((key) => key === '$and' || key === '$or' || key === '$nor');
  if (keys.some((key) => key.startsWith('$')) && !logical) return operatorsToQuery(operand, element, form);
  return whereToQuery(operand, {
    ...form,
    resolve: (path) => ref.form.toMember(ref, path),
  });
}

const EARTH_RADIUS_MILES = 3959;
const EARTH_RADIUS_KILOMETERS = 6371;

/** Half the circumference of the globe, in radians, for queries without a distance bound. */
const WHOLE_EARTH = Math.PI;

const UNITS_PER_RADIAN: Readonly<Record<string, number>> = {
  $maxDistance: 1,
  $maxDistanceInRadians: 1,
  $maxDistanceInMiles: EARTH_RADIUS_MILES,
  $maxDistanceInKilometers: EARTH_RADIUS_KILOMETERS,
};

function nonNegative(value: unknown, what: string): number {
  if (typeof value !== 'number' || !(value >= 0))
    throw untranslatable(`${what} must be a number, not negative`);
  return value;
}

/** `[longitude, latitude]` of a GeoPoint, a GeoJSON point or such a pair. */
function toPoint(value: unknown): [number, number] {
  const geoJson = isPlainObject(value) && Array.isArray(value['coordinates']) ? value['coordinates'] : value;
  const point = Array.isArray(geoJson) ? { longitude: geoJson[0], latitude: geoJson[1] } : geoJson;
  return inQuery(() => toCoordinates(point));
}

/** The distance bound beside a near operator, in radians. */
function readMaxDistance(constraint: Readonly<Record<string, unknown>>): number | undefined {
  for (const [key, units] of Object.entries(UNITS_PER_RADIAN)) {
    if (constraint[key] !== undefined) return nonNegative(constraint[key], key) / units;
  }
  return undefined;
}

/** Sorted by distance where the database supports it; a circle where the constraint only filters (counts, aggregation). */
function nearToQuery(constraint: Readonly<Record<string, unknown>>, filterOnly: boolean): Document {
  const operand = constraint['$nearSphere'] ?? constraint['$near'];
  const geometry = isPlainObject(operand) ? operand['$geometry'] : undefined;
  const center = toPoint(geometry ?? operand);
  const radius = readMaxDistance(constraint);
  if (filterOnly) return { $geoWithin: { $centerSphere: [center, radius ?? WHOLE_EARTH] } };
  return { $nearSphere: center, ...(radius !== undefined && { $maxDistance: radius }) };
}

function readList(value: unknown, least: number, what: string): unknown[] {
  if (!Array.isArray(value) || value.length < least)
    throw untranslatable(`${what} needs ${least} or more entries`);
  return value;
}

const GEOMETRY_TYPES = new Set([
  'Point',
  'LineString',
  'Polygon',
  'MultiPoint',
  'MultiLineString',
  'MultiPolygon',
]);

function toGeometry(value: unknown): Document {
  if (!isPlainObject(value)) throw untranslatable('$geometry must be an object');
  if (value['__type'] === 'GeoPoint') return { type: 'Point', coordinates: toPoint(value) };
  if (value['__type'] === 'Polygon') {
    const ring = readList(value['coordinates'], 3, 'Polygon').map((pair) => {
      const [latitude, longitude] = readList(pair, 2, 'a vertex');
      return toPoint({ latitude, longitude });
    });
    const [first] = ring;
    const closed = first && String(first) !== String(ring.at(-1)) ? [...ring, first] : ring;
    return { type: 'Polygon', coordinates: [closed] };
  }
  const { type, coordinates } = value;
  if (typeof type !== 'string' || !GEOMETRY_TYPES.has(type) || !Array.isArray(coordinates))
    throw untranslatable('$geometry needs a GeoJSON type and coordinates');
  return { type, coordinates };
}

/** Parse Server reads the pairs of a polygon in this operator as longitude, latitude. */
function toPolygon(value: unknown): Document {
  const vertices = isPlainObject(value) && value['__type'] === 'Polygon' ? value['coordinates'] : value;
  return { $polygon: readList(vertices, 3, '$polygon').map(toPoint) };
}

function toCenterSphere(value: unknown): Document {
  const [center, radius] = readList(value, 2, '$centerSphere');
  return { $centerSphere: [toPoint(center), nonNegative(radius, 'the radius')] };
}

const AREAS: Readonly<Record<string, (value: unknown) => Document>> = {
  $box: (value) => ({ $box: readList(value, 2, '$box').slice(0, 2).map(toPoint) }),
  $polygon: toPolygon,
  $centerSphere: toCenterSphere,
  $geometry: (value) => ({ $geometry: toGeometry(value) }),
};

function withinToQuery(operand: unknown): Document {
  const shapes = isPlainObject(operand) ? Object.keys(operand) : [];
  const area = shapes.length === 1 ? AREAS[shapes[0] as string] : undefined;
  if (!area) throw untranslatable(`$geoWithin takes exactly one of ${Object.keys(AREAS).join(', ')}`);
  return { $geoWithin: area((operand as Document)[shapes[0] as string]) };
}

function intersectsToQuery(operand: unknown): Document {
  const geometry = isPlainObject(operand) ? (operand['$point'] ?? operand['$geometry']) : undefined;
  return { $geoIntersects: { $geometry: toGeometry(geometry) } };
}
