import { cutText, canonicalClassName, isClassName, type Refusal, Refused } from '#core';
import { FIELD_TYPES, type FieldSchema, type FieldType } from '../model/class-schema.js';
import type { PropertyPolicy } from '../model/policy.js';
import { isPlainObject, isTyped } from '../model/where.js';
import { isNeverGiven, isOperation, refuseFields } from './written-value.js';

export interface FieldRules {
  /** The column in the database; undefined for a new one. */
  readonly column: FieldSchema | undefined;
  /** The declaration of the operator. */
  readonly declared: PropertyPolicy | undefined;
  readonly mayName: MayName;
}

/** Whether an error may name a class: one that is withheld from the agent is not known to it. */
export type MayName = (className: string) => boolean;

/** How a value of a type is written in JSON. */
const FORMS: Readonly<Record<string, string>> = {
  Date: '{"__type":"Date","iso":"2025-01-31T09:00:00.000Z"}',
  Pointer: '{"__type":"Pointer","className":"…","objectId":"…"}',
  GeoPoint: '{"__type":"GeoPoint","latitude":0,"longitude":0}',
  File: '{"__type":"File","name":"…"}',
  Bytes: '{"__type":"Bytes","base64":"…"}',
  Polygon: '{"__type":"Polygon","coordinates":[[0,0],[0,1],[1,0]]}',
};

/**
 * Checks a value against the type of the column, the declared type and the declared values.
 * @returns the type that the value needs; null when it fits any (null, `Delete`)
 * @throws Refused `invalid_argument`
 */
export function assertFits(
  name: string,
  value: unknown,
  { column, declared, mayName }: FieldRules,
): FieldSchema | null {
  const asked = inferFieldType(value);
  if (column?.type === 'Relation') refuseFields(`${name}: relations are not changed by raw writes`);
  if (!asked) {
    if (column?.required) refuseFields(`${name} is required`);
    return null;
  }
  const expected = column ?? findDeclaredType(declared);
  if (expected && !isSameType(expected, asked)) {
    refuseFields(
      `${name} takes a ${typeName(expected, mayName)}, not a ${typeName(asked)}${sayForm(expected, mayName)}`,
    );
  }
  assertDeclaredValue(name, value, declared?.enum);
  return asked;
}

export function findDeclaredType(declared: PropertyPolicy | undefined): FieldSchema | null {
  if (declared?.type === undefined) return null;
  const { type, targetClass } = declared;
  return {
    type: type as FieldSchema['type'],
    ...(targetClass !== undefined && { targetClass: canonicalClassName(targetClass) }),
  };
}

/** Checks a value against the values that the operator declares. @throws Refused `invalid_argument` */
export function assertDeclaredValue(
  name: string,
  value: unknown,
  allowed: ReadonlyMap<string, string> | undefined,
): void {
  if (!allowed) return;
  const isDeclared = (entry: unknown) =>
    ['string', 'number', 'boolean'].includes(typeof entry) && allowed.has(String(entry));
  if (valuesLeft(value).every(isDeclared)) return;
  refuseFields(`${name} must be one of ${[...allowed.keys()].slice(0, 20).join(', ')}`);
}

/** The values that the write leaves in the field; the sum of an Increment is never a declared one. */
function valuesLeft(value: unknown): readonly unknown[] {
  if (isOperation(value)) return Array.isArray(value['objects']) ? value['objects'] : [null];
  return Array.isArray(value) ? value : [value];
}

const SIMPLE_TYPES: ReadonlySet<string> = new Set(['Date', 'GeoPoint', 'File', 'Bytes', 'Polygon']);

const OPERATOR_TYPES: Readonly<Record<string, FieldType>> = {
  Increment: 'Number',
  Add: 'Array',
  AddUnique: 'Array',
  Remove: 'Array',
};

function firstPointerClass(objects: unknown): string | undefined {
  const first: unknown = Array.isArray(objects) ? objects[0] : undefined;
  return isTyped(first) && typeof first['className'] === 'string' ? first['className'] : undefined;
}

/** The column type that a value needs; null when it fits any (null, `Delete`) or none. */
export function inferFieldType(value: unknown): FieldSchema | null {
  if (typeof value === 'string') return { type: 'String' };
  if (typeof value === 'number') return { type: 'Number' };
  if (typeof value === 'boolean') return { type: 'Boolean' };
  if (Array.isArray(value)) return { type: 'Array' };
  if (value instanceof Date) return { type: 'Date' };
  if (isTyped(value)) return findTypedFieldType(value.__type, value['className']);
  if (!isPlainObject(value)) return null;
  const operator = value['__op'];
  if (operator === 'AddRelation' || operator === 'RemoveRelation') {
    const targetClass = firstPointerClass(value['objects']);
    return targetClass ? { type: 'Relation', targetClass } : null;
  }
  if (operator === undefined) return { type: 'Object' };
  const type = typeof operator === 'string' ? OPERATOR_TYPES[operator] : undefined;
  return type ? { type } : null;
}

function findTypedFieldType(name: string, className: unknown): FieldSchema | null {
  if (SIMPLE_TYPES.has(name)) return { type: name as FieldType };
  if (name !== 'Pointer' && name !== 'Relation') return null;
  return typeof className === 'string' ? { type: name, targetClass: className } : null;
}

/** Whether a column has the type that a value needs. */
export function isSameType(column: FieldSchema, asked: FieldSchema): boolean {
  if (column.type !== asked.type) return false;
  return column.targetClass === undefined || column.targetClass === asked.targetClass;
}

/** How to write a value of the type, for a refusal; empty where the name of the type says it. */
export function sayForm({ type, targetClass }: FieldSchema, mayName: MayName = () => true): string {
  const form = FORMS[type];
  if (form === undefined) return '';
  const named = targetClass !== undefined && mayName(targetClass) ? targetClass : '…';
  return `; write it as ${form.replace('"className":"…"', `"className":"${named}"`)}`;
}

export function typeName({ type, targetClass }: FieldSchema, mayName: MayName = () => true): string {
  return targetClass === undefined || !mayName(targetClass) ? type : `${type}<${targetClass}>`;
}

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;
const MAX_FIELDS = 500;
const TARGETED_TYPES: ReadonlySet<string> = new Set(['Pointer', 'Relation']);
const TYPES: ReadonlySet<string> = new Set(FIELD_TYPES.filter((type) => type !== 'ACL'));

/**
 * The columns of a new class: `{ name: 'String' }` or `{ name: { type: 'Pointer', targetClass: 'Author' } }`.
 * @param judgeClass the class gate, called for every target except the new class itself
 * @throws Refused `invalid_argument`
 */
export function readNewClassFields(
  className: string,
  given: unknown,
  judgeClass: (className: string) => Refusal | null,
): ReadonlyMap<string, FieldSchema> {
  const fields = new Map<string, FieldSchema>();
  if (given === undefined || given === null) return fields;
  if (!isPlainObject(given)) return refuseFields('fields must be an object of name: type');
  if (Object.keys(given).length > MAX_FIELDS)
    refuseFields(`a class is made with at most ${MAX_FIELDS} fields`);
  for (const [name, declared] of Object.entries(given)) {
    if (!FIELD_NAME.test(name) || isNeverGiven(name) || name === 'password')
      refuseFields(`'${cutText(name, 128)}' cannot be the name of a field`);
    fields.set(name, toFieldSchema(name, declared));
  }
  for (const { targetClass } of fields.values()) {
    const refusal = targetClass === undefined || targetClass === className ? null : judgeClass(targetClass);
    if (refusal) throw new Refused(refusal);
  }
  return fields;
}

function toFieldSchema(name: string, declared: unknown): FieldSchema {
  const { type, targetClass, ...others } = isPlainObject(declared) ? declared : { type: declared };
  if (Object.keys(others).length > 0) refuseFields(`${name} takes only type and targetClass`);
  if (typeof type !== 'string' || !TYPES.has(type))
    return refuseFields(`${name}: type must be one of ${[...TYPES].join(', ')}`);
  if (!TARGETED_TYPES.has(type)) {
    if (targetClass !== undefined) refuseFields(`${name}: only Pointer and Relation have a targetClass`);
    return { type: type as FieldType };
  }
  if (!isClassName(targetClass)) return refuseFields(`${name}: a ${type} needs a targetClass`);
  return { type: type as FieldType, targetClass: canonicalClassName(targetClass) };
}
