import { canonicalClassName } from '#agent';
import type { PropertyPolicy } from '../model/class-policy.js';
import type { FieldSchema } from '../model/class-schema.js';
import { fieldTypeOf, isSameType, typeName } from './field-type.js';
import { isOperation, refuseFields } from './written-value.js';

export interface FieldRules {
  /** As the database knows the field; absent for a new one. */
  readonly column: FieldSchema | undefined;
  /** As the operator declared it. */
  readonly declared: PropertyPolicy | undefined;
}

const FORMS: Readonly<Record<string, string>> = {
  Date: '{"__type":"Date","iso":"2025-01-31T09:00:00.000Z"}',
  Pointer: '{"__type":"Pointer","className":"…","objectId":"…"}',
  GeoPoint: '{"__type":"GeoPoint","latitude":0,"longitude":0}',
  File: '{"__type":"File","name":"…"}',
  Bytes: '{"__type":"Bytes","base64":"…"}',
  Polygon: '{"__type":"Polygon","coordinates":[[0,0],[0,1],[1,0]]}',
};

/**
 * Holds a value against the column's type, the declared type and the declared values.
 * @returns the type it asks for; null when it fits any (null, `Delete`)
 * @throws Refused `invalid_argument`
 */
export function assertFits(
  name: string,
  value: unknown,
  { column, declared }: FieldRules,
): FieldSchema | null {
  const asked = fieldTypeOf(value);
  if (column?.type === 'Relation') refuseFields(`${name}: relations are not changed by raw writes`);
  if (!asked) {
    if (column?.required) refuseFields(`${name} is required`);
    return null;
  }
  const expected = column ?? declaredType(declared);
  if (expected && !isSameType(expected, asked)) {
    const form = FORMS[expected.type];
    refuseFields(
      `${name} takes a ${typeName(expected)}, not a ${typeName(asked)}${form ? `; write it as ${form}` : ''}`,
    );
  }
  assertDeclaredValue(name, value, declared?.enum);
  return asked;
}

function declaredType(declared: PropertyPolicy | undefined): FieldSchema | null {
  if (declared?.type === undefined) return null;
  const { type, targetClass } = declared;
  return {
    type: type as FieldSchema['type'],
    ...(targetClass !== undefined && { targetClass: canonicalClassName(targetClass) }),
  };
}

function assertDeclaredValue(
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

/** The values a write leaves in the field; the sum of an Increment is none that was declared. */
function valuesLeft(value: unknown): readonly unknown[] {
  if (isOperation(value)) return Array.isArray(value['objects']) ? value['objects'] : [null];
  return Array.isArray(value) ? value : [value];
}
