import { untranslatable } from '../errors.js';
import { isPointer, isPointerString, pointerString } from '../storage/pointer-string.js';
import { columnToStorage, isTyped, nestedToStorage } from '../storage/to-storage.js';
import { UnstorableValue } from '../storage/unstorable-value.js';
import type { ColumnRef } from './column-ref.js';

const ISO_DATE = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/** One operand in the form its column holds. @throws StoreError `invalid_query` */
export function operandToStorage(value: unknown, ref: ColumnRef): unknown {
  const inside = ref.nested || ref.field?.type === 'Array' || ref.field?.type === 'Object';
  if (typeof value === 'string') return inside ? value : textToStorage(value, ref);
  try {
    return inside ? nestedToStorage(value) : columnToStorage(value);
  } catch (error) {
    throw error instanceof UnstorableValue ? untranslatable(error.message) : error;
  }
}

function textToStorage(text: string, { field }: ColumnRef): unknown {
  if (field?.type === 'Date') return ISO_DATE.test(text) ? validDate(text) : text;
  const prefixed = field?.type === 'Pointer' && field.targetClass !== undefined && !isPointerString(text);
  return prefixed ? pointerString(field.targetClass, text) : text;
}

/** Text that only looks like a date is compared as text, and so matches no date. */
function validDate(text: string): Date | string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : date;
}

/** Bare ids in a list take the class of a typed member when the column itself names none. */
export function operandsToStorage(values: unknown, ref: ColumnRef, operator: string): unknown[] {
  if (!Array.isArray(values)) throw untranslatable(`${operator} needs an array`);
  const donor = ref.field?.type === 'Pointer' && !ref.field.targetClass ? values.find(isPointer) : undefined;
  const known = donor ? { ...ref, field: { type: 'Pointer' as const, targetClass: donor.className } } : ref;
  return values.map((value) => operandToStorage(value, known));
}

const comparesPointer = (operand: unknown): boolean =>
  isPointer(operand) || (Array.isArray(operand) && operand.some(isPointer));

/** Whether a constraint compares with pointers: what makes an undeclared name a pointer column. */
export function mentionsPointer(constraint: unknown): boolean {
  if (comparesPointer(constraint)) return true;
  if (typeof constraint !== 'object' || constraint === null || isTyped(constraint)) return false;
  return ['$eq', '$ne', '$in', '$nin'].some((operator) =>
    comparesPointer((constraint as Record<string, unknown>)[operator]),
  );
}
