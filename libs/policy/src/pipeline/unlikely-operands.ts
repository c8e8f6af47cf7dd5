import { cutText, refuse } from '#core';
import { readConstant, readMembers, typeOfExpression } from './expression-types.js';
import type { Frame } from './frame.js';
import { noteOtherClass } from '../where/column-values.js';

/*
 * Operands that are most likely not meant as they are written, and for which the database answers nothing, or one constant, without a
 * word. All of it follows from what is written and from the types of columns that the caller may name.
 */

/** Notes that a pointer of Parse is the text `Class$id` in an expression, and equals no id alone. */
export function notePointer(value: unknown, other: unknown, frame: Frame): void {
  if (frame.access.schema?.storage === 'plain' || typeof other !== 'string') return;
  if (typeOfExpression(other, frame)?.type !== 'Pointer') return;
  const constant = readConstant(value);
  if (constant ? !isIdAlone(constant.value) : typeOfExpression(value, frame)?.type !== 'String') return;
  frame.note?.(
    `'${cutText(other, 128)}' is 'CLASS$ID' in an expression, and equals no id alone. Write a condition without $expr, such as ` +
      '{"$match":{"FIELD":"ID"}}, and join by localField and foreignField',
  );
}

const isIdAlone = (value: unknown): boolean => typeof value === 'string' && !value.includes('$');

/** Notes that the key of a group, or a computed field, is a text, where a column of that name is meant. */
export function noteConstant(value: unknown, frame: Frame): void {
  const parts: readonly unknown[] = typeof value === 'string' ? [value] : Object.values(readMembers(value));
  for (const part of parts)
    if (typeof part === 'string' && !part.startsWith('$') && frame.findType(part, true))
      frame.note?.(
        `'${cutText(part, 128)}' is the same text for every row: for the column write "$${cutText(part, 128)}"`,
      );
}

/** Notes that a path leads to a place in a list, which expressions have no paths for. */
export function notePlace(path: string, frame: Frame): void {
  const place = /^(.+?)\.(\d+)(?:\.|$)/.exec(path);
  const [, list = '', index = ''] = place ?? [];
  if (place && frame.findType(list, true)?.type === 'Array')
    frame.note?.(
      `'$${cutText(path, 128)}' finds no entry by its place in an expression: write {"$arrayElemAt":["$${cutText(list, 128)}",${index}]}`,
    );
}

/** Notes that a date is written in a form without a place for any part of it. */
export function noteDateFormat(operand: unknown, frame: Frame): void {
  const { format } = readMembers(operand);
  if (typeof format === 'string' && !format.startsWith('$') && !format.includes('%'))
    frame.note?.(
      `'${cutText(format, 64)}' has no part of the date in it: write such as "%Y-%m-%d", with %H:%M:%S for the time`,
    );
}

const UNITS: ReadonlySet<string> = new Set(
  'year quarter month week day hour minute second millisecond'.split(' '),
);

/** @throws Refused `invalid_query` for a unit of time that there is not */
export function checkUnit(operator: string, operand: unknown): void {
  const { unit } = readMembers(operand);
  if (typeof unit !== 'string' || unit.startsWith('$') || UNITS.has(unit)) return;
  const near = unit.toLowerCase().replace(/s$/, '');
  const instead = UNITS.has(near) ? `write "${near}"` : `write one of ${[...UNITS].join(', ')}`;
  throw refuse.invalidQuery(`${operator} has no unit '${cutText(unit, 64)}': ${instead}`);
}

/** `$count` of a group has no operand. @throws Refused `invalid_query` */
export function checkCount(operator: string, operand: unknown): void {
  if (operator === '$count' && JSON.stringify(operand) !== '{}')
    throw refuse.invalidQuery('$count in a group takes nothing: write {"$count":{}}, or {"$sum":1}');
}

/** Notes that a join connects a pointer with the ids of another class. */
export function noteOtherJoin(ids: string, of: Frame, pointer: string, column: Frame): void {
  if (ids !== 'objectId' || [of, column].some(({ sourceAddressable }) => !sourceAddressable)) return;
  if (of.isIntroduced(ids) || column.isIntroduced(pointer)) return;
  const { fields } = column.access.schema ?? {};
  const { targetClass, type } = fields?.get(pointer) ?? {};
  if (type === 'Pointer' && targetClass !== undefined)
    noteOtherClass(of.access.className, { path: pointer, targetClass }, column.note);
}

/** Notes that the column in which Parse stores a pointer joins no ids. */
export function noteStoredPointer(local: unknown, foreign: unknown, frame: Frame): void {
  for (const [one, other] of [
    [local, foreign],
    [foreign, local],
  ])
    if (typeof one === 'string' && one.startsWith('_p_') && (other === '_id' || other === 'objectId'))
      frame.note?.(
        `'${cutText(one, 128)}' is 'CLASS$ID', and joins no ids: write '${cutText(one.slice(3), 128)}'`,
      );
}
