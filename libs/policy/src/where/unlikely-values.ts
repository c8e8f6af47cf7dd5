import { cutText, isObjectId, refuse, type Refused } from '#core';
import type { Note } from '../model/value-type.js';
import { isPlainObject, isTyped, parseIsoDate, parsePrefixedPointer } from '../model/where.js';
import type { Column } from './column.js';

/*
 * Values that are most likely not meant as they are written. One that nothing in the column can equal is refused; of any other one the
 * answer says as what it was compared. All of it follows from the value and the type of the column, never from what rows hold or from
 * the class behind a pointer.
 */

/** @throws Refused `invalid_query` for a value that no pointer, object or point can equal */
export function assertMayEqual(value: unknown, column: Column): void {
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
export function noteReference(text: string, { path, stored }: Column, note: Note | undefined): void {
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
export function noteText(text: string, { path, className }: Column, note: Note | undefined): void {
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
export function noteWhole(
  value: unknown,
  { path, type, stored, known }: Column,
  note: Note | undefined,
): void {
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
