import type { FieldSchema, FieldType } from '../model/class-schema.js';
import { isPlainObject } from '../model/plain-object.js';
import { isTyped } from '../where/typed-value.js';

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

/** The column type a value asks for; null when it fits any (null, `Delete`) or none. */
export function fieldTypeOf(value: unknown): FieldSchema | null {
  if (typeof value === 'string') return { type: 'String' };
  if (typeof value === 'number') return { type: 'Number' };
  if (typeof value === 'boolean') return { type: 'Boolean' };
  if (Array.isArray(value)) return { type: 'Array' };
  if (value instanceof Date) return { type: 'Date' };
  if (isTyped(value)) return typedFieldType(value.__type, value['className']);
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

function typedFieldType(name: string, className: unknown): FieldSchema | null {
  if (SIMPLE_TYPES.has(name)) return { type: name as FieldType };
  if (name !== 'Pointer' && name !== 'Relation') return null;
  return typeof className === 'string' ? { type: name, targetClass: className } : null;
}

/** Whether a column can hold what a value asks for. */
export function isSameType(column: FieldSchema, asked: FieldSchema): boolean {
  if (column.type !== asked.type) return false;
  return column.targetClass === undefined || column.targetClass === asked.targetClass;
}

export function typeName({ type, targetClass }: FieldSchema): string {
  return targetClass === undefined ? type : `${type}<${targetClass}>`;
}
