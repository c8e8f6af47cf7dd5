import { isClassName } from '#agent';
import { canonicalClassName } from '#agent';
import { FIELD_TYPES, type FieldSchema, type FieldType } from '../model/class-schema.js';
import { isPlainObject } from '../model/plain-object.js';
import { isNeverGiven } from './refused-keys.js';
import { type JudgeClass, refuseFields } from './written-value.js';

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;
const MAX_FIELDS = 500;
const TARGETED: ReadonlySet<string> = new Set(['Pointer', 'Relation']);
const TYPES: ReadonlySet<string> = new Set(FIELD_TYPES.filter((type) => type !== 'ACL'));

/**
 * The columns of a class to be made: `{ name: 'String' }` or `{ name: { type: 'Pointer', targetClass: 'Author' } }`.
 * @param judge the class gate, asked about every target but the new class itself
 * @throws Refused `invalid_argument`
 */
export function readNewClassFields(
  className: string,
  given: unknown,
  judge: JudgeClass,
): ReadonlyMap<string, FieldSchema> {
  const fields = new Map<string, FieldSchema>();
  if (given === undefined || given === null) return fields;
  if (!isPlainObject(given)) return refuseFields('fields must be an object of name: type');
  if (Object.keys(given).length > MAX_FIELDS)
    refuseFields(`a class is made with at most ${MAX_FIELDS} fields`);
  for (const [name, declared] of Object.entries(given)) {
    if (!FIELD_NAME.test(name) || isNeverGiven(name) || name === 'password')
      refuseFields(`'${name.slice(0, 128)}' cannot be the name of a field`);
    fields.set(name, fieldOf(name, declared));
  }
  for (const { targetClass } of fields.values())
    if (targetClass !== undefined && targetClass !== className) judge(targetClass);
  return fields;
}

function fieldOf(name: string, declared: unknown): FieldSchema {
  const { type, targetClass, ...others } = isPlainObject(declared) ? declared : { type: declared };
  if (Object.keys(others).length > 0) refuseFields(`${name} takes only type and targetClass`);
  if (typeof type !== 'string' || !TYPES.has(type))
    return refuseFields(`${name}: type must be one of ${[...TYPES].join(', ')}`);
  if (!TARGETED.has(type)) {
    if (targetClass !== undefined) refuseFields(`${name}: only Pointer and Relation have a targetClass`);
    return { type: type as FieldType };
  }
  if (!isClassName(targetClass)) return refuseFields(`${name}: a ${type} needs a targetClass`);
  return { type: type as FieldType, targetClass: canonicalClassName(targetClass) };
}
