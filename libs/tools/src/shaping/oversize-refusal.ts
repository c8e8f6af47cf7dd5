import type { Refusal } from '#agent';
import { type FieldWeight, heaviestField, weighFields } from './row-weights.js';

const FIELDS_NAMED = 3;
const KEYS_NAMED = 64;
const ALWAYS_KEPT = ['objectId', 'createdAt', 'updatedAt'];
/** What the `keys` argument would accept; it also keeps names that a pipeline made up from filling the message. */
const USABLE_KEY = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;

function readableSize(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  const kilobytes = bytes / 1024;
  return kilobytes < 1024 ? `${kilobytes.toFixed(1)} KB` : `${(kilobytes / 1024).toFixed(1)} MB`;
}

function diagnosis(weights: readonly FieldWeight[]): string {
  const heaviest = weights
    .slice(0, FIELDS_NAMED)
    .map(({ field, bytesPerRow }) => `${field.slice(0, 128)} (~${readableSize(bytesPerRow)}/record)`);
  const dropped = heaviestField(weights);
  const light = weights
    .map(({ field }) => field)
    .filter((field) => field !== dropped && !ALWAYS_KEPT.includes(field) && USABLE_KEY.test(field))
    .slice(0, KEYS_NAMED - ALWAYS_KEPT.length)
    .sort();
  return (
    ` Largest fields by bytes: ${heaviest.join(', ')}.` +
    ` Try keys: "${[...light, ...ALWAYS_KEPT].join(',')}" (drops the heaviest field).`
  );
}

/**
 * A result that cannot be cut to fit. Names fields, never values; what it names was already readable.
 * @param rows the rows of the result, or null when it is not made of rows
 */
export function oversizeRefusal(bytes: number, cap: number, rows: readonly unknown[] | null): Refusal {
  const weights = rows ? weighFields(rows) : [];
  return {
    code: 'invalid_argument',
    gate: 'result_size',
    wordsOnly: true,
    message:
      `Tool result exceeded ${cap} bytes (${bytes}).` +
      (weights.length > 0 ? diagnosis(weights) : '') +
      ' Narrow the query: lower limit:, name fewer fields in keys:, or make where: stricter.',
  };
}
