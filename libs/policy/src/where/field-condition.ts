import { cutText, canonicalClassName, isClassName, isObjectId, type Refusal, Refused, refuse } from '#core';
import type { ClassAccess } from '../model/class-access.js';
import { type FieldSchema, type FieldType, memberField } from '../model/class-schema.js';
import { takeRoot } from '../model/field-names.js';
import {
  assertMayBeText,
  compareValue,
  type Note,
  typeAt,
  typeOfColumn,
  type ValueType,
} from '../model/value-type.js';
import {
  blockFilter,
  isPlainObject,
  isPointer,
  isScalar,
  isTyped,
  isWithin,
  parseIsoDate,
  parsePrefixedPointer,
  type PlainObject,
  type Pointer,
  pointer,
  reduceTyped,
  toTypedDate,
  type TypedValue,
  type Where,
} from '../model/where.js';
import { NO_PATTERN, regexIssue } from './regex-safety.js';

/** The rules for the conditions of one field. */
export interface ConditionRules extends ValueRules {
  /** `$inQuery`, `$notInQuery`, `$select`, `$dontSelect`. */
  readonly crossClass: (operator: string, operand: unknown) => Record<string, unknown>;
}

type Translate = (operand: unknown, column: Column, rules: ConditionRules, beside: PlainObject) => Where;

/** All operators that are allowed under a field, with their translations. */
const OPERATORS: Readonly<Record<string, Translate>> = {
  $eq: comparison('$eq'),
  $ne: comparison('$ne'),
  $lt: comparison('$lt'),
  $lte: comparison('$lte'),
  $gt: comparison('$gt'),
  $gte: comparison('$gte'),
  $in: list('$in'),
  $nin: list('$nin'),
  $all: list('$all'),
  $containedIn: list('$in'),
  $containedBy: list('$containedBy'),
  $containsAll: list('$all'),
  $exists: (operand) => {
    if (typeof operand !== 'boolean') throw refuse.invalidQuery("'$exists' needs true or false");
    return { $exists: operand };
  },
  $regex: (operand, column, _rules, beside) => {
    const condition = regexCondition(operand, beside['$options']);
    assertMayBeText(column.known, { with: column.path });
    return condition;
  },
  $options: (_operand, _column, _rules, beside) => {
    if (!('$regex' in beside)) throw refuse.invalidQuery("'$options' needs '$regex' beside it");
    return {};
  },
  $near: (operand) => geoCondition('$near', operand),
  $nearSphere: (operand) => geoCondition('$nearSphere', operand),
  $within: (operand) => geoCondition('$geoWithin', operand),
  $geoWithin: (operand) => geoCondition('$geoWithin', operand),
  $geoIntersects: (operand) => geoCondition('$geoIntersects', operand),
  $maxDistance: nearOnly('$maxDistance'),
  $maxDistanceInMiles: nearOnly('$maxDistanceInMiles'),
  $maxDistanceInKilometers: nearOnly('$maxDistanceInKilometers'),
  $maxDistanceInRadians: nearOnly('$maxDistanceInRadians'),
  $inQuery: (operand, _column, rules) => rules.crossClass('$inQuery', operand),
  $notInQuery: (operand, _column, rules) => rules.crossClass('$notInQuery', operand),
  $select: (operand, _column, rules) => rules.crossClass('$select', operand),
  $dontSelect: (operand, _column, rules) => rules.crossClass('$dontSelect', operand),
};

/**
 * The conditions in the value of one field, each a constraint of its own; the caller combines them with AND.
 * `{ a: { b: { $gt: 1 } } }` is a condition on `a.b`; an object without operators is compared as a whole.
 */
export function fieldConditions(value: unknown, column: Column, rules: ConditionRules): Where[] {
  if (isPlainObject(value) && !isTyped(value) && hasOperators(value)) {
    const operators = Object.keys(value).filter((key) => key.startsWith('$'));
    if (operators.length === 0) {
      if (column.type === 'Pointer') throw createNoMember(column);
      return Object.entries(value).flatMap(([key, member]) =>
        fieldConditions(member, toMemberColumn(column, key), rules),
      );
    }
    if (operators.length < Object.keys(value).length) {
      throw refuse.invalidQuery(`The condition on '${column.path}' mixes operators and field names`);
    }
    return operatorConditions(value, column, rules);
  }
  assertNoBareOperators(value, column);
  noteDay(value, column, rules.note);
  return [{ [column.path]: columnValue(value, column, rules) }];
}

/** Notes that a date without a time equals its first moment alone. */
function noteDay(value: unknown, { path, known }: Column, note: Note | undefined): void {
  if (known?.type !== 'Date' || typeof value !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(value)) return;
  const day = parseIsoDate(value);
  if (!day) return;
  const next = new Date(day.getTime() + 86_400_000).toISOString().slice(0, 10);
  note?.(
    `'${cutText(path, 128)}' equals ${value} at midnight UTC alone: for the day write {"$gte":"${value}","$lt":"${next}"}`,
  );
}

/**
 * An object whose names are all those of operators is a condition without its `$`, which no stored object would match.
 * @throws Refused
 */
export function assertNoBareOperators(value: unknown, { path, known }: Column): void {
  if (!isPlainObject(value) || isTyped(value)) return;
  const names = Object.keys(value);
  const isOperator = (name: string) => Object.hasOwn(OPERATORS, `$${name}`) && !known?.member?.(name);
  const [name] = names;
  if (name === undefined || !names.every(isOperator)) return;
  throw refuse.invalidQuery(
    `'${name}' is no operator: write '$${name}'. For a member of that name write the path '${cutText(path, 128)}.${name}'`,
  );
}

/**
 * A list of conditions under `or`, where the class has no column of that name, is a condition without its `$`.
 * @throws Refused
 */
export function assertNoBareLogic(
  name: string,
  value: unknown,
  { readable, schema }: Pick<ClassAccess, 'readable' | 'schema'>,
): void {
  if (!LOGIC.has(name) || !Array.isArray(value) || !value.every(isPlainObject)) return;
  if ((readable ?? schema?.fields)?.has(name)) return;
  throw refuse.invalidQuery(`'${name}' is no operator: write '$${name}'`);
}

const LOGIC: ReadonlySet<string> = new Set(['and', 'or', 'nor']);

function operatorConditions(value: PlainObject, column: Column, rules: ConditionRules): Where[] {
  const conditions: Record<string, unknown>[] = [];
  for (const [operator, operand] of Object.entries(value)) {
    if (operator === '$text') {
      throw refuse.invalidQuery("'$text' searches the whole class: write it at the top of the query");
    }
    if (ALL.has(operator) && Array.isArray(operand) && operand.length > 0 && operand.every(isPattern)) {
      for (const pattern of operand) place(regexOperator(pattern, column, rules), conditions);
      continue;
    }
    const translate = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (!translate) throw refuse.invalidQuery(`Operator '${operator}' cannot stand under '${column.path}'`);
    place(translate(operand, column, rules, value), conditions);
  }
  return conditions.map((condition) => ({ [column.path]: condition }));
}

const ALL = new Set(['$all', '$containsAll']);

/** In a list of `$all`: what some entry begins with, as Parse SDKs ask for it. */
const isPattern = (value: unknown): value is PlainObject =>
  isPlainObject(value) &&
  '$regex' in value &&
  Object.keys(value).every((key) => key === '$regex' || key === '$options');

const regexOperator = (pattern: PlainObject, column: Column, rules: ConditionRules): Where =>
  (OPERATORS['$regex'] as Translate)(pattern['$regex'], column, rules, pattern);

/** Two spellings of one operator (`$in`, `$containedIn`) must both apply, so they need separate objects. */
function place(condition: Where, conditions: Record<string, unknown>[]): void {
  const names = Object.keys(condition);
  if (names.length === 0) return;
  const free = conditions.find((taken) => names.every((name) => !(name in taken)));
  if (free) Object.assign(free, condition);
  else conditions.push({ ...condition });
}

/** Objects only: an array is a value, in which operators are refused later. */
function hasOperators(value: PlainObject): boolean {
  return Object.entries(value).some(
    ([key, member]) =>
      key.startsWith('$') || (isPlainObject(member) && !isTyped(member) && hasOperators(member)),
  );
}

/** They also compare lists and objects as a whole. */
const WHOLE_VALUES = new Set(['$eq', '$ne']);

function comparison(operator: string): Translate {
  return (operand, column, rules) => {
    if (
      !WHOLE_VALUES.has(operator) &&
      !isScalar(operand) &&
      !isTyped(operand) &&
      !(operand instanceof Date)
    ) {
      throw refuse.invalidQuery(`'${operator}' compares with one value, not with an array or object`);
    }
    if (operator === '$eq') noteDay(operand, column, rules.note);
    return { [operator]: columnValue(operand, column, rules) };
  };
}

function list(operator: string): Translate {
  return (operand, column, rules) => {
    if (!Array.isArray(operand)) throw refuse.invalidQuery(`'${operator}' needs an array`);
    return { [operator]: columnValues(operand, column, rules) };
  };
}

function nearOnly(operator: string): Translate {
  return (operand, _column, _rules, beside) => {
    if (!('$near' in beside) && !('$nearSphere' in beside)) {
      throw refuse.invalidQuery(`'${operator}' needs '$near' or '$nearSphere' beside it`);
    }
    return { [operator]: distance(operator, operand) };
  };
}

/** The column of a condition. `type` is undefined for undeclared columns and inside objects. */
export interface Column {
  readonly className: string;
  readonly path: string;
  readonly type?: FieldType;
  /** Of a pointer column, and of a list of pointers whose class is declared. */
  readonly targetClass?: string;
  /** Of a plain class: what its schema says about the path, inside documents too. */
  readonly stored?: FieldSchema;
  /** What is known of its values. */
  readonly known?: ValueType | undefined;
}

export interface ValueRules {
  readonly strictPointerShapes: boolean;
  /** Texts that are never read as `Class$id`. */
  readonly literals?: ReadonlySet<string>;
  /** A text that is compared with values of every type. */
  readonly unchecked?: string | undefined;
  /** The class gate for every class that a pointer names. */
  readonly judgeClass: (className: string) => Refusal | null;
  /** Takes remarks for the answer. Default: none are made. */
  readonly note?: Note | undefined;
}

export function columnAt(path: string, access: ClassAccess): Column {
  const { schema } = access;
  const root = takeRoot(path);
  const field = schema?.fields.get(root);
  const inside = path === root ? [] : path.split('.').slice(1);
  const stored = schema?.storage === 'plain' ? memberField(field, inside) : undefined;
  const known = typeAt(typeOfColumn(root, schema), inside, false);
  const column = { className: access.className, path, known, ...(stored && { stored }) };
  if (path !== root || !field) return column;
  const targetClass = field.type === 'Array' && !stored ? access.lists?.get(root) : field.targetClass;
  return { ...column, type: field.type, ...(targetClass && { targetClass }) };
}

export function toMemberColumn({ className, path, stored, known }: Column, key: string): Column {
  const keys = key.split('.');
  const member = memberField(stored, keys);
  return {
    className,
    path: `${path}.${key}`,
    known: typeAt(known, keys, false),
    ...(member && { stored: member }),
  };
}

/** A number as text, in one spelling: no exponent, no zero that could be left out. */
const NUMBER = /^(?!-0$)-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/;

/**
 * A value of the agent as it is compared with a column of a plain class: this value, and no other reading of its text. `Shop$1` is
 * not the shop `1`, and `1.0` is not the tenant `1`. Null: no row can have it.
 */
export function exactOperand(
  value: string | number | boolean,
  column: FieldSchema | undefined,
): string | number | boolean | Pointer | null {
  if (column?.targetClass !== undefined)
    return typeof value === 'boolean' ? null : pointer(column.targetClass, String(value));
  return typeof value === 'string' && column?.type === 'Number' && !NUMBER.test(value) ? null : value;
}

/** The value as it is compared with a column: typed values reduced, dates and pointers in typed form. */
export function columnValue(value: unknown, column: Column, rules: ValueRules): unknown {
  if (typeof value === 'string') return columnText(value, column, column.targetClass, rules);
  if (isPlainObject(value) && !isTyped(value)) {
    if (column.type === 'Pointer') throw createNoMember(column);
    noteWhole(value, column, rules.note);
  }
  const plain = isTyped(value)
    ? withUsableId(admitValue(reduceTyped(value), rules), column, rules)
    : plainValue(value, rules);
  return convertCompared(plain, column, rules);
}

const createNoMember = ({ path }: Column): Refused =>
  refuse.invalidQuery(`'${path}' points to another class: compare it with a Pointer, or ask with $inQuery`);

/** Notes that an object equals another one only with the same members: a part of them matches nothing. */
function noteWhole(value: PlainObject, { path, type, stored }: Column, note: Note | undefined): void {
  const [member] = Object.keys(value);
  const holdsObjects = ['Object', 'Array'].includes(stored?.type ?? type ?? '');
  if (member === undefined || !holdsObjects) return;
  note?.(
    `An object is compared with all of its members. For one member write its path: '${cutText(path, 128)}.${cutText(member, 64)}'`,
  );
}

const convertCompared = (
  value: unknown,
  { path, known }: Column,
  { note, unchecked }: ValueRules,
): unknown =>
  value !== undefined && value === unchecked ? value : compareValue(value, known, { with: path, note });

/** The members of `$in`, `$nin`, `$all`: bare ids get the class of typed pointers beside them. */
export function columnValues(values: readonly unknown[], column: Column, rules: ValueRules): unknown[] {
  const holdsPointers =
    isReference(column) || (column.type === undefined && values.some((value) => isPointer(value)));
  if (!holdsPointers) return values.map((value) => columnValue(value, column, rules));
  const target = column.targetClass ?? onlyClassAmong(values);
  const pointers: Column = { ...column, type: 'Pointer' };
  return values.map((value) =>
    typeof value === 'string'
      ? columnText(value, pointers, target, rules)
      : columnValue(value, pointers, rules),
  );
}

function columnText(text: string, column: Column, target: string | undefined, rules: ValueRules): unknown {
  // Groups give this key to rows without a value.
  if (text === 'null' && !rules.literals?.has(text))
    rules.note?.(
      `'${cutText(column.path, 128)}' is compared with the text "null": null without quotes finds rows without a value`,
    );
  if (column.stored && rules.literals?.has(text)) {
    const operand = exactOperand(text, column.stored);
    if (operand === null) throw createUnfitting(column);
    if (operand !== text) return operand;
  }
  if (!isReference(column)) {
    if (column.type === 'Array' && !column.stored && isLikeId(text))
      rules.note?.(describeListOfIds(text, column));
    return convertCompared(text, column, rules);
  }
  const prefixed = rules.literals?.has(text) ? null : parsePrefixedPointer(text);
  if (prefixed) return withUsableId(admitValue({ ...prefixed }, rules), column, rules);
  if (target !== undefined)
    return withUsableId(admitValue({ ...pointer(target, text) }, rules), column, rules);
  if (rules.strictPointerShapes) throw refuse.pointerShapeMismatch(column.className, column.path);
  return text;
}

/** A pointer to a text that can be no id matches nothing: a name was meant, most likely. Ids of plain classes are any texts. @throws Refused */
function withUsableId(
  value: TypedValue,
  { path, stored, type }: Column,
  { literals }: ValueRules,
): TypedValue {
  const id = String(value['objectId']);
  if (stored || !isPointer(value) || isObjectId(value['objectId']) || literals?.has(id)) return value;
  const field = cutText(path, 128);
  const instead =
    type === 'Pointer'
      ? `; to find by another field of it write {"${field}":{"$inQuery":{"className":"${String(value['className'])}","where":{…}}}}`
      : '';
  throw refuse.invalidQuery(
    `'${field}' is compared with '${cutText(id, 64)}', which can be no id (letters, digits, _ and -, at most 32 characters)${instead}`,
  );
}

/** A text beside its values is the id of a row. Lists of plain classes hold ids as they are. */
const isReference = ({ type, targetClass, stored }: Column): boolean =>
  type === 'Pointer' || (type === 'Array' && targetClass !== undefined && !stored);

/** As Parse generates ids: ten letters and digits, which are hardly ever a word. */
const isLikeId = (text: string): boolean => /^(?=.*[A-Z0-9])[A-Za-z0-9]{10}$/.test(text);

const describeListOfIds = (text: string, { path }: Column): string =>
  `'${text}' was compared as text with the entries of '${cutText(path, 128)}'. Where these are Pointers, write ` +
  `{"__type":"Pointer","className":"CLASS","objectId":"${text}"}`;

const createUnfitting = ({ className, path }: Column): Refused =>
  refuse.agentValueUnset(className, `the value of the agent is no value of '${path}'`);

/** Values inside arrays and objects are not compared with a column of their own. */
function plainValue(value: unknown, rules: ValueRules): unknown {
  if (value instanceof Date) return toTypedDate(value);
  if (isTyped(value)) return admitValue(reduceTyped(value), rules);
  if (Array.isArray(value)) return value.map((element) => plainValue(element, rules));
  if (!isPlainObject(value)) return value;
  const operator = Object.keys(value).find((key) => key.startsWith('$'));
  if (operator !== undefined) {
    throw refuse.invalidQuery(`Operator '${operator}' cannot stand inside a value`);
  }
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plainValue(member, rules)]));
}

function admitValue(value: TypedValue, rules: ValueRules): TypedValue {
  const { className } = value;
  if (typeof className === 'string') {
    const refusal = rules.judgeClass(className);
    if (refusal) throw new Refused(refusal);
  }
  return value;
}

function onlyClassAmong(values: readonly unknown[]): string | undefined {
  const classes = new Set<string>();
  for (const value of values) {
    if (isPointer(value) && isClassName(value['className']))
      classes.add(canonicalClassName(value['className']));
  }
  const [only, ...others] = classes;
  return others.length === 0 ? only : undefined;
}

const MAX_CHARACTERS = 256;
const OPTIONS = /^[imsx]{0,8}$/;

/**
 * `$regex` with its `$options`, both checked.
 * @throws Refused `invalid_query` for what is no pattern, `security_blocked` for one that could run for ever
 */
function regexCondition(pattern: unknown, options: unknown): Record<string, unknown> {
  if (typeof pattern !== 'string') throw refuse.invalidQuery("'$regex' takes a pattern as text");
  if (options !== undefined && (typeof options !== 'string' || !OPTIONS.test(options))) {
    throw refuse.invalidQuery("'$options' takes the letters i, m, s and x");
  }
  if (Array.from(pattern).length > MAX_CHARACTERS) throw blockFilter('where', 'regex_too_long');
  const issue = regexIssue(pattern, options);
  if (issue === 'invalid_regex') throw refuse.invalidQuery(NO_PATTERN);
  if (issue) throw blockFilter('where', issue);
  return { $regex: pattern, ...(options !== undefined && options !== '' && { $options: options }) };
}

/**
 * Normalises geo conditions: points are GeoPoint values; `$near` and `$nearSphere` have a point, with their distance beside them;
 * `$geoWithin` has exactly one of `$centerSphere: [point, radians]`, `$box: [point, point]`, `$polygon: [points] | Polygon`,
 * `$geometry: GeoJSON`; `$geoIntersects` has `$geometry`.
 */
function geoCondition(operator: string, operand: unknown): Record<string, unknown> {
  if (operator === '$geoWithin') return { $geoWithin: region(operand) };
  if (operator === '$geoIntersects') {
    const form = isPlainObject(operand) && '$point' in operand ? '$point' : '$geometry';
    const value = only(operand, form);
    return { $geoIntersects: { $geometry: geometry(form === '$point' ? point(value) : value) } };
  }
  if (isPlainObject(operand) && '$geometry' in operand) return nearGeometry(operator, operand);
  return { [operator]: point(operand) };
}

function distance(operator: string, operand: unknown): number {
  if (typeof operand === 'number' && Number.isFinite(operand) && operand >= 0) return operand;
  throw refuse.invalidQuery(`'${operator}' needs a number that is not negative`);
}

/** Distances of GeoJSON are in metres, those of Parse in radians unless named otherwise. */
function nearGeometry(operator: string, operand: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { $geometry, $maxDistance, ...others } = operand;
  const place = geometry($geometry);
  if (Object.keys(others).length > 0 || place.type !== 'Point') {
    throw refuse.invalidQuery(
      `'${operator}' takes a GeoPoint, or $geometry with a Point and $maxDistance in metres`,
    );
  }
  return {
    [operator]: point(place.coordinates),
    ...($maxDistance !== undefined && {
      $maxDistanceInKilometers: distance('$maxDistance', $maxDistance) / 1000,
    }),
  };
}

function region(operand: unknown): Record<string, unknown> {
  const [form, ...others] = isPlainObject(operand) ? Object.keys(operand) : [];
  const value = isPlainObject(operand) && form !== undefined ? operand[form] : undefined;
  if (others.length === 0 && form === '$geometry') return { $geometry: geometry(value) };
  if (others.length === 0 && form === '$box' && Array.isArray(value) && value.length === 2) {
    return { $box: value.map(point) };
  }
  if (others.length === 0 && form === '$centerSphere' && Array.isArray(value) && value.length === 2) {
    return { $centerSphere: [point(value[0]), distance('$centerSphere', value[1])] };
  }
  if (others.length === 0 && form === '$polygon') {
    if (isTyped(value) && value.__type === 'Polygon') return { $polygon: reduceTyped(value) };
    if (Array.isArray(value) && value.length >= 3) return { $polygon: value.map(point) };
  }
  throw refuse.invalidQuery(
    "'$geoWithin' takes one of $centerSphere: [point, radians], $box: [point, point], $polygon: [three or more points], $geometry",
  );
}

function only(operand: unknown, key: string): unknown {
  if (isPlainObject(operand) && Object.keys(operand).length === 1 && key in operand) return operand[key];
  throw refuse.invalidQuery("'$geoIntersects' takes $geometry or $point");
}

/** A GeoPoint, or a `[longitude, latitude]` pair in GeoJSON order. */
function point(value: unknown): TypedValue {
  if (isTyped(value) && value.__type === 'GeoPoint') return reduceTyped(value);
  if (Array.isArray(value) && value.length === 2 && isWithin(value[0], 180) && isWithin(value[1], 90)) {
    return { __type: 'GeoPoint', latitude: value[1], longitude: value[0] };
  }
  throw refuse.invalidQuery('A point is a GeoPoint or [longitude, latitude]');
}

/** The nesting of the coordinates of each GeoJSON type above one position. */
const NESTING: Readonly<Record<string, number>> = {
  Point: 0,
  MultiPoint: 1,
  LineString: 1,
  Polygon: 2,
  MultiLineString: 2,
  MultiPolygon: 3,
};

function geometry(value: unknown): { readonly type: string; readonly coordinates: unknown } {
  if (isTyped(value) && value.__type === 'GeoPoint') {
    const { longitude, latitude } = reduceTyped(value);
    return { type: 'Point', coordinates: [longitude, latitude] };
  }
  if (isPlainObject(value) && Object.keys(value).length === 2) {
    const { type, coordinates } = value;
    const levels = typeof type === 'string' && Object.hasOwn(NESTING, type) ? NESTING[type] : undefined;
    if (typeof type === 'string' && levels !== undefined && isNested(coordinates, levels)) {
      return { type, coordinates };
    }
  }
  throw refuse.invalidQuery(`'$geometry' takes a GeoPoint or GeoJSON: ${Object.keys(NESTING).join(', ')}`);
}

function isNested(value: unknown, levels: number): boolean {
  if (!Array.isArray(value) || value.length === 0) return false;
  if (levels > 0) return value.every((element) => isNested(element, levels - 1));
  return value.length === 2 && isWithin(value[0], 180) && isWithin(value[1], 90);
}
