import type { Refusal } from '#agent';
import { type AdvisedTool, oversizeAdvice, type OversizeParts } from './oversize-advice.js';
import { weighFields } from './row-weights.js';

const FIELDS_NAMED = 3;

function readableSize(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  const kilobytes = bytes / 1024;
  return kilobytes < 1024 ? `${kilobytes.toFixed(1)} KB` : `${(kilobytes / 1024).toFixed(1)} MB`;
}

function diagnosis(rows: readonly unknown[]): string {
  const heaviest = weighFields(rows)
    .slice(0, FIELDS_NAMED)
    .map(({ field, bytesPerRow }) => `${field.slice(0, 128)} (~${readableSize(bytesPerRow)}/record)`);
  return heaviest.length > 0 ? ` Largest fields by bytes: ${heaviest.join(', ')}.` : '';
}

/**
 * A result that cannot be cut to fit. Names fields, never values; what it names was already readable.
 * @param bytes null: too many to be counted
 * @param parts what the result is made of, or null when it has no parts
 */
export function oversizeRefusal(
  bytes: number | null,
  cap: number,
  parts: OversizeParts | null,
  tool: AdvisedTool,
): Refusal {
  return {
    code: 'invalid_argument',
    gate: 'result_size',
    wordsOnly: true,
    message:
      `Tool result exceeded ${cap} bytes${bytes === null ? '' : ` (${bytes})`}.` +
      (parts?.rows ? diagnosis(parts.entries) : '') +
      oversizeAdvice(tool, parts, cap),
  };
}
