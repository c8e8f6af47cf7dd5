import { cutText, isJsonObject } from '#core';
import type { Refusal } from '#core';
import type { ParseRow } from '#data';
import { isFieldName, isPlainName } from '#policy';
import { measurePrinted } from './presented-rows.js';

/** The properties of a tool that decide which advice applies. */
interface AdvisedTool {
  readonly name: string;
  /** The arguments that it declares. */
  readonly takes: readonly string[];
}

/** The parts of a result that a caller can request separately. */
export interface OversizeOptions {
  readonly className: string | null;
  /** Rows, groups, values or passages, in result order. */
  readonly entries: readonly unknown[];
  /** Whether the entries are rows with named fields. */
  readonly rows: boolean;
}

const KEYS_NAMED = 64;
const ALWAYS_KEPT = ['objectId', 'createdAt', 'updatedAt'];
/** A name that the `keys` argument accepts. It also keeps arbitrary pipeline names out of the message. */
const isUsableKey = (name: string): boolean => isFieldName(name) && isPlainName(name);
/** Share of the limit for values: what stands around them, such as names, separators and indentation, is not measured. */
const USED_SHARE = 0.7;

/**
 * The advised arguments, only ones that the tool declares, each with its name and JSON value; and other ways to narrow
 * the result.
 * @param cap maximum bytes of a result
 */
function oversizeAdvice(tool: AdvisedTool, parts: OversizeOptions | null, cap: number): string {
  return `${parts ? describeTrial(tool, parts, cap * USED_SHARE) : ''}${describeNarrowing(tool)}`;
}

function describeTrial({ name, takes }: AdvisedTool, parts: OversizeOptions, budget: number): string {
  const { className, entries, rows } = parts;
  const heaviest = rows ? heaviestField(weighFields(entries)) : null;
  const keys = rows ? lightKeys(entries, budget) : [];
  if (heaviest !== null && takes.includes('columns')) {
    const columns = keys.filter(
      (key) => !ALWAYS_KEPT.includes(key) || entries.some((row) => isJsonObject(row) && key in row),
    );
    if (columns.length > 0) return ` Try columns: ${JSON.stringify(columns)} (drops the heaviest field).`;
  }
  if (heaviest !== null && takes.includes('keys'))
    return ` Try keys: ${JSON.stringify(keys)} (drops the heaviest field).`;
  if (heaviest !== null && takes.includes('pipeline'))
    return ` Try this as the last stage of pipeline: ${JSON.stringify({ $unset: heavyFields(entries, keys) })}.`;
  const fitting = countFittingEntries(entries, budget);
  const count = ['limit', 'k'].find((argument) => takes.includes(argument));
  if (count && fitting > 0 && fitting < entries.length) return ` Try ${count}: ${fitting}.`;
  if (name === 'get_sample_objects' && heaviest !== null)
    return ` Try query_class: ${JSON.stringify({ class_name: className, keys, order: '-createdAt', limit: entries.length })}.`;
  return '';
}

function describeNarrowing({ takes }: AdvisedTool): string {
  const ways = [
    ['limit', 'lower limit:'],
    ['k', 'lower k:'],
    ['ids', 'ask for fewer ids:'],
    ['keys', 'name fewer fields in keys:'],
    ['names', 'name the classes in names:'],
    ['where', 'make where: stricter'],
    ['filter', 'make filter: stricter'],
    ['pipeline', 'end pipeline: with $project or $limit'],
  ].flatMap(([argument = '', way]) => (takes.includes(argument) ? [way] : []));
  return ways.length > 0 ? ` Narrow the query: ${ways.join(', or ')}.` : '';
}

/** The fields that fit together, lightest first, without the heaviest of all; equal ones by name. */
function lightKeys(rows: readonly unknown[], budget: number): readonly string[] {
  const totals = sumTotals(rows);
  const heaviest = heaviestField(weighFields(rows));
  let left = budget - ALWAYS_KEPT.reduce((sum, field) => sum + (totals.get(field) ?? 0), 0);
  const light = [...totals]
    .filter(([field]) => field !== heaviest && !ALWAYS_KEPT.includes(field) && isUsableKey(field))
    .sort(([, a], [, b]) => a - b)
    .filter(([, bytes]) => (left -= bytes) >= 0)
    .map(([field]) => field)
    .slice(0, KEYS_NAMED - ALWAYS_KEPT.length);
  return [...light.sort(), ...ALWAYS_KEPT];
}

function heavyFields(rows: readonly unknown[], kept: readonly string[]): readonly string[] {
  return [...sumTotals(rows).keys()].filter((field) => !kept.includes(field) && isUsableKey(field)).sort();
}

function sumTotals(rows: readonly unknown[]): ReadonlyMap<string, number> {
  const totals = new Map<string, number>();
  for (const row of rows.filter(isJsonObject))
    for (const [field, value] of Object.entries(row))
      totals.set(field, (totals.get(field) ?? 0) + byteLength(value) + byteLength(field));
  return totals;
}

function countFittingEntries(entries: readonly unknown[], budget: number): number {
  let left = budget;
  const over = entries.findIndex((entry) => (left -= byteLength(entry)) < 0);
  return over < 0 ? entries.length : over;
}

const FIELDS_NAMED = 3;

function readableSize(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  const kilobytes = bytes / 1024;
  return kilobytes < 1024 ? `${kilobytes.toFixed(1)} KB` : `${(kilobytes / 1024).toFixed(1)} MB`;
}

function diagnosis(rows: readonly unknown[]): string {
  const heaviest = weighFields(rows)
    .slice(0, FIELDS_NAMED)
    .map(({ field, bytesPerRow }) => `${cutText(field, 128)} (~${readableSize(bytesPerRow)}/record)`);
  return heaviest.length > 0 ? ` Largest fields by bytes: ${heaviest.join(', ')}.` : '';
}

/**
 * The refusal of a result that cannot be cut to fit. It names readable fields, never values.
 * @param bytes null: too many to be counted
 * @param parts of the result, or null when it has none
 */
export function oversizeRefusal(
  bytes: number | null,
  cap: number,
  parts: OversizeOptions | null,
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

const SAMPLE_ROWS = 5;

/** Members that a row always keeps: its identity, its times and its origin. */
const NEVER_DROPPED = new Set(['objectId', 'createdAt', 'updatedAt', '_id', '_source']);

export interface FieldWeight {
  readonly field: string;
  /** Average serialised size of the values, over the sampled rows. */
  readonly bytesPerRow: number;
}

/** Maximum characters that are printed to weigh a value; a value that may be larger weighs this. */
const MAX_WEIGHED_LENGTH = 64 * 1024 * 1024;

export function byteLength(value: unknown): number {
  if (measurePrinted(value, MAX_WEIGHED_LENGTH) > MAX_WEIGHED_LENGTH) return MAX_WEIGHED_LENGTH;
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

/** The first rows: enough to find the heavy field, few enough to be cheap on a huge result. */
export function takeSample(rows: readonly unknown[]): readonly ParseRow[] {
  return rows.slice(0, SAMPLE_ROWS).filter(isJsonObject);
}

/** Fields of the sampled rows, heaviest first; equal ones by name. */
export function weighFields(rows: readonly unknown[]): readonly FieldWeight[] {
  const sample = takeSample(rows);
  const bytes = new Map<string, number>();
  for (const row of sample)
    for (const [field, value] of Object.entries(row))
      bytes.set(field, (bytes.get(field) ?? 0) + byteLength(value));
  return [...bytes]
    .map(([field, total]) => ({ field, bytesPerRow: total / sample.length }))
    .sort((a, b) => b.bytesPerRow - a.bytesPerRow || (a.field < b.field ? -1 : 1));
}

/** The field to leave out first, or null when the rows have no removable field. */
function heaviestField(weights: readonly FieldWeight[]): string | null {
  return weights.find(({ field }) => !NEVER_DROPPED.has(field))?.field ?? null;
}

/** That field, or null where rows without it would show nothing but who they are. */
export function removableField(weights: readonly FieldWeight[]): string | null {
  const shown = weights.filter(({ field }) => !NEVER_DROPPED.has(field));
  return shown.length > 1 ? heaviestField(shown) : null;
}

export function withoutField(row: unknown, field: string | null): unknown {
  if (field === null || !isJsonObject(row)) return row;
  return Object.fromEntries(Object.entries(row).filter(([key]) => key !== field));
}
