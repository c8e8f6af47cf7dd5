import { cutText, canonicalClassName, isClassName, isObjectId, type Refusal, Refused, refuse } from '#core';
import type { ClassAccess } from '../model/class-access.js';
import { type FieldSchema, type FieldType, memberField } from '../model/class-schema.js';
import { takeRoot } from '../model/field-names.js';
import {
  compareValue,
  type Note,
  noteMember,
  typeAt,
  typeOfColumn,
  type ValueType,
} from '../model/value-type.js';
import {
  isPlainObject,
  isPointer,
  isTyped,
  parseIsoDate,
  parsePrefixedPointer,
  type Pointer,
  pointer,
  reduceTyped,
  toTypedDate,
  type TypedValue,
} from '../model/where.js';

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

export function columnAt(path: string, access: ClassAccess): Column {
  const { schema } = access;
  const root = takeRoot(path);
  const field = schema?.fields.get(root);
  const inside = path === root ? [] : path.split('.').slice(1);
  const stored = schema?.storage === 'plain' ? memberField(field, inside) : undefined;
  const type = typeOfColumn(root, schema);
  const known = path === root ? type : typeAt(type, inside, false);
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

/** A path with a dot leads through its root. @throws Refused `invalid_query` where that is a pointer */
export function checkPath(path: string, access: ClassAccess, note: Note | undefined): void {
  const root = takeRoot(path);
  if (root === path) return;
  const column = columnAt(root, access);
  if (column.type === 'Pointer') throw createNoMember(column);
  noteMember(column.known, path.slice(root.length + 1), { with: root, note });
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
  assertMayEqual(value, column);
  if (typeof value === 'string') return columnText(value, column, column.targetClass, rules);
  if (isPlainObject(value) && !isTyped(value) && column.type === 'Pointer') throw createNoMember(column);
  noteWhole(value, column, rules.note);
  const plain = isTyped(value) ? admitValue(reduceTyped(value), rules) : plainValue(value, rules);
  if (isReference(column) && isPointer(plain)) noteOtherClass(plain['className'], column, rules.note);
  return convertCompared(plain, column, rules);
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
    if (!rules.literals?.has(text)) noteText(text, column, rules.note);
    return convertCompared(text, column, rules);
  }
  const prefixed = rules.literals?.has(text) ? null : parsePrefixedPointer(text);
  if (prefixed) {
    const named = admitValue({ ...prefixed }, rules);
    noteOtherClass(named['className'], column, rules.note);
    return named;
  }
  if (!rules.literals?.has(text)) noteReference(text, column, rules.note);
  if (target !== undefined) return admitValue({ ...pointer(target, text) }, rules);
  if (rules.strictPointerShapes) throw refuse.pointerShapeMismatch(column.className, column.path);
  return text;
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

/*
 * Values that are most likely not meant as they are written. One that nothing in the column can equal is refused; of any other one the
 * answer says as what it was compared. All of it follows from the value and the type of the column, never from what rows hold or from
 * the class behind a pointer.
 */

/** @throws Refused `invalid_query` for a value that no pointer, object or point can equal */
function assertMayEqual(value: unknown, column: Column): void {
  const { type, known, stored, path } = column;
  if (value === null || value === undefined || known?.type !== type || known?.uncertain) return;
  const isText = typeof value === 'string';
  const isOther = typeof value === 'number' || typeof value === 'boolean';
  const field = cutText(path, 128);
  // Ids of plain classes may be numbers, and so may what a program keeps in the place of a point.
  if (type === 'Pointer' && (typeof value === 'boolean' || ((Array.isArray(value) || isOther) && !stored)))
    throw createNoMember(column);
  if (type === 'Pointer' && value === '' && !stored)
    throw refuse.invalidQuery(`'${field}' holds no empty text: null finds rows without a value`);
  if (type === 'Object' && (isText || isOther))
    throw refuse.invalidQuery(
      `'${field}' is an object: compare one of its members, by a path such as ${field}.NAME`,
    );
  if (type === 'GeoPoint' && !stored && !isTyped(value) && !(value instanceof Date))
    throw refuse.invalidQuery(
      `'${field}' is a point: write in a where {"$nearSphere":{"__type":"GeoPoint","latitude":0,"longitude":0},"$maxDistanceInKilometers":10}, ` +
        'and begin a pipeline with $geoNear',
    );
}

export function createNoMember({ path }: Pick<Column, 'path'>): Refused {
  const field = cutText(path, 128);
  return refuse.invalidQuery(
    `'${field}' points to another class: compare it with the id of a row as text, several with $in, or ask for what the rows hold: ` +
      nameWays(field),
  );
}

/** The ways to a condition on the row behind a pointer. */
const nameWays = (field: string): string =>
  `in a where {"${field}":{"$inQuery":{"className":"CLASS","where":{…}}}}, in a pipeline by $lookup`;

/** Notes that a text which hardly is an id was compared as one. Ids of plain classes are often words. */
function noteReference(text: string, { path, stored }: Column, note: Note | undefined): void {
  if (text === 'null' || (isObjectId(text) && (stored || !/^[A-Z]?[a-z]+$/.test(text)))) return;
  const field = cutText(path, 128);
  note?.(
    `'${cutText(text, 64)}' was compared as the id of the row that '${field}' points to. To find by another field of that row write ` +
      nameWays(field),
  );
}

/** Notes that a condition names another class than that to whose rows the column points, which the note does not name. */
export function noteOtherClass(
  className: unknown,
  { path, targetClass }: Pick<Column, 'path' | 'targetClass'>,
  note: Note | undefined,
): void {
  if (typeof className === 'string' && targetClass !== undefined && className !== targetClass)
    note?.(
      `'${cutText(path, 128)}' points to rows of another class than '${cutText(className, 128)}': get_schema names it`,
    );
}

/** Notes that a text was compared as a whole, where a pattern or a condition is meant. */
function noteText(text: string, { path, className }: Column, note: Note | undefined): void {
  if (!note) return;
  const field = cutText(path, 128);
  if (path === 'objectId' && parsePrefixedPointer(text)?.className === className)
    note(`'objectId' is the id alone: write "${cutText(text.slice(className.length + 1), 64)}"`);
  else if (PATTERN.test(text))
    note(
      `'${field}' was compared with the whole text '${cutText(text, 64)}'. For a part of it write {"$regex":"…"}`,
    );
  else if (/^\s*\{\s*"\$/.test(text))
    note(
      `'${field}' was compared with the text of a condition: write the condition as an object, without quotes`,
    );
}

/** As other languages write a part of a text: `%part%`, `part*`, `/part/i`. */
const PATTERN = /^[%*].|.[%*]$|^\/[^/]+\/[gimsuy]*$/su;

/** Notes that slashes around a pattern are characters of it. */
export function notePattern(pattern: unknown, { path }: Column, note: Note | undefined): void {
  if (typeof pattern === 'string' && /^\/.+\/[gimsuy]*$/s.test(pattern))
    note?.(
      `The pattern for '${cutText(path, 128)}' has slashes around it, which are looked for as well. Write {"$regex":"part","$options":"i"}`,
    );
}

/** Notes that an object or a list equals another one only as a whole. */
function noteWhole(value: unknown, { path, type, stored, known }: Column, note: Note | undefined): void {
  // Nothing is known of what objects of Parse hold: a member may be an object as well.
  const held = stored?.type ?? type ?? (known === undefined ? 'Object' : '');
  const field = cutText(path, 128);
  if (Array.isArray(value) && value.length > 0 && held === 'Array')
    note?.(
      `A list is compared with '${field}' as a whole, in its order. For rows with all of these entries write {"$all":[…]}, with some {"$in":[…]}`,
    );
  if (!isPlainObject(value) || isTyped(value) || !['Object', 'Array'].includes(held)) return;
  const [member] = Object.keys(value);
  if (member !== undefined)
    note?.(
      `An object is compared with all of its members. For one member write its path: '${field}.${cutText(member, 64)}'`,
    );
}

/** Notes that a date without a time equals its first moment alone. */
export function noteDay(value: unknown, { path, known }: Column, note: Note | undefined): void {
  if (known?.type !== 'Date' || typeof value !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(value)) return;
  const day = parseIsoDate(value);
  if (!day) return;
  const next = new Date(day.getTime() + 86_400_000).toISOString().slice(0, 10);
  note?.(
    `'${cutText(path, 128)}' equals ${value} at midnight UTC alone: for the day write {"$gte":"${value}","$lt":"${next}"}`,
  );
}
