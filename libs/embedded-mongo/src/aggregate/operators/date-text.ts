import { mongoError } from '../../errors.js';
import { typeName } from '../../bson/type-name.js';
import { toInstant, readZone } from '../date/arguments.js';
import { compileDateFormat, utcFormat } from '../date/format.js';
import { parseDate, parseWithFormat } from '../date/parse.js';
import { utcZone } from '../date/zone.js';
import { readNamedArguments, requireText } from '../arguments.js';
import { nullish, type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { remember } from '../../bson/remember.js';

const formatter = remember(200, compileDateFormat);

const toString: OperatorCompiler = (argument, builder, name) => {
  const parts = readNamedArguments(argument, builder, name, ['date'], ['format', 'timezone', 'onNull']);
  return (scope) => {
    const instant = toInstant(parts.date(scope));
    const zone = readZone(parts.timezone && (parts.timezone(scope) ?? null));
    const format = parts.format?.(scope);
    if (instant === null) return parts.onNull ? parts.onNull(scope) : null;
    if (zone === null || (parts.format && nullish(format))) return null;
    if (format !== undefined && typeof format !== 'string') {
      throw mongoError(18533, `${name} requires that 'format' be a string, found: ${typeName(format)}`);
    }
    const standard = zone === utcZone ? utcFormat : '%Y-%m-%dT%H:%M:%S.%L';
    return formatter(typeof format === 'string' ? format : standard)(instant, zone);
  };
};

const fromString: OperatorCompiler = (argument, builder, name) => {
  const parts = readNamedArguments(
    argument,
    builder,
    name,
    ['dateString'],
    ['format', 'timezone', 'onNull', 'onError'],
  );
  return (scope) => {
    const text = parts.dateString(scope);
    const zone = parts.timezone && readZone(parts.timezone(scope) ?? null);
    const format = parts.format?.(scope);
    if (nullish(text)) return parts.onNull ? parts.onNull(scope) : null;
    if (zone === null || (parts.format && nullish(format))) return null;
    if (parts.format) requireText(format, `'format' of ${name}`, 40684);
    try {
      if (typeof text !== 'string') {
        throw mongoError(241, `${name} requires a string as 'dateString', not ${typeName(text)}`);
      }
      return typeof format === 'string' ? parseWithFormat(text, format, zone) : parseDate(text, zone);
    } catch (error) {
      if (parts.onError) return parts.onError(scope);
      throw error;
    }
  };
};

/** Dates to text and back. */
export const dateTextOperators: OperatorTable = { $dateToString: toString, $dateFromString: fromString };
