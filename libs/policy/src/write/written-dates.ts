import { readMoment } from '#core';
import type { FieldSchema } from '../model/class-schema.js';
import { isPlainObject, isTyped, toTypedDate } from '../model/where.js';
import { isOperation } from './written-value.js';

type Column = Pick<FieldSchema, 'type' | 'members'>;

/** A value of a column with its dates as Parse writes them: answers show a date as text, and so is it given back. */
export function withTypedDates(value: unknown, column: Column | undefined): unknown {
  if (column?.type === 'Date' && typeof value === 'string') {
    const moment = readMoment(value);
    return moment === null ? value : toTypedDate(new Date(moment));
  }
  const { members } = column ?? {};
  if (!members) return value;
  const readEntry = (entry: unknown) =>
    isPlainObject(entry) && !isTyped(entry)
      ? mapMembers(entry, (member, name) => withTypedDates(member, members.get(name)))
      : entry;
  if (isOperation(value))
    return mapMembers(value, (member, name) =>
      name === 'objects' && Array.isArray(member) ? member.map(readEntry) : member,
    );
  return Array.isArray(value) ? value.map(readEntry) : readEntry(value);
}

const mapMembers = (
  object: Readonly<Record<string, unknown>>,
  map: (member: unknown, name: string) => unknown,
): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).map(([name, member]) => [name, map(member, name)]));
