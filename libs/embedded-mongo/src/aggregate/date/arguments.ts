import { printValue } from '../../bson/shell-text.js';
import { ObjectId, Timestamp } from 'bson';
import { mongoError } from '../../errors.js';
import { typeName } from '../../bson/type-name.js';
import { nullish } from '../evaluate.js';
import { isDateUnit, type DateUnit } from './calendar.js';
import { utcZone, findZone, type Zone } from './zone.js';

/** The instant of a date, an ObjectId or a timestamp; null stays null. Errors: 16006 for other types. */
export function toInstant(value: unknown): number | null {
  if (nullish(value)) return null;
  if (value instanceof Date) return Number(value);
  if (value instanceof ObjectId) return secondsOfId(value) * 1000;
  if (value instanceof Timestamp) return value.t * 1000;
  throw mongoError(16006, `can't convert from BSON type ${typeName(value)} to Date`);
}

/** The seconds in an ObjectId are signed: they end in 2038. */
export const secondsOfId = (id: ObjectId): number => (Number(id.getTimestamp()) / 1000) | 0;

/** The zone an argument names, UTC where it is left out; null when it is null. Errors: 40517 when it is no string. */
export function readZone(name: unknown): Zone | null {
  if (name === undefined) return utcZone;
  if (name === null) return null;
  if (typeof name !== 'string')
    throw mongoError(40517, `timezone must evaluate to a string, found ${typeName(name)}`);
  return findZone(name);
}

/** A unit of `$dateAdd` and its kin; null when it is null. Errors: 9 for an unknown one. */
export function unitArgument(value: unknown, name: string): DateUnit | null {
  if (nullish(value)) return null;
  if (!isDateUnit(value)) throw mongoError(9, `${name} has no time unit ${printValue(value)}`);
  return value;
}

const weekDays = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

/** The day a week begins on, Sunday being 0, also where it is left out; null when it is null. Errors: 9 for an unknown name. */
export function readStartOfWeek(value: unknown, name: string): number | null {
  if (value === undefined) return 0;
  if (value === null) return null;
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  const day = weekDays.findIndex((full) => full === text || full.slice(0, 3) === text);
  if (day < 0) throw mongoError(9, `${name} has no day of the week ${printValue(value)}`);
  return day;
}
