import { setOwn } from '#core';
import type { Document } from 'mongodb';
import type { ParseRow } from '#data';
import { isPlainObject } from '#policy';
import { findKind } from '../storage/plain-scalars.js';
import type { ExpressionMapper } from './expression-to-storage.js';
import type { RowScope } from './row-scope.js';

/** Kinds of columns whose sums a double or a decimal holds as the database computes them. */
const SUMMED_AS_STORED = new Set(['int', 'double', 'decimal', 'date', 'bool']);

/**
 * The accumulators of groups over documents of other programs, such that sums and averages of 64-bit integers keep every digit:
 * MongoDB averages them as doubles, and sums them as one beyond 64 bits. Decimals hold 34 digits.
 */
export function sumExactly(
  accumulators: Readonly<Record<string, unknown>>,
  scope: RowScope,
  mapper: ExpressionMapper,
): Readonly<Record<string, unknown>> {
  if (!scope.form.pointersAreIds) return accumulators;
  const exact: Record<string, unknown> = {};
  for (const [name, accumulator] of Object.entries(accumulators))
    setOwn(exact, name, isPlainObject(accumulator) ? sumLongs(accumulator, mapper) : accumulator);
  return exact;
}

function sumLongs(accumulator: Readonly<Record<string, unknown>>, mapper: ExpressionMapper): unknown {
  const [operator, ...others] = Object.keys(accumulator);
  if (others.length > 0 || (operator !== '$sum' && operator !== '$avg')) return accumulator;
  const summed = accumulator[operator];
  const isReference = typeof summed === 'string' && summed.startsWith('$');
  if (!isReference && !isPlainObject(summed)) return accumulator;
  const kind = findKind(mapper.findType(summed).field);
  if (kind !== null && SUMMED_AS_STORED.has(kind)) return accumulator;
  const asDecimal = (value: string) => ({
    $cond: [{ $eq: [{ $type: value }, 'long'] }, { $toDecimal: value }, value],
  });
  return {
    [operator]: isReference ? asDecimal(summed) : { $let: { vars: { summed }, in: asDecimal('$$summed') } },
  };
}

/** Numbers that some row of an answer shows as text, because a JSON number would lose digits, are text in every row. */
export class NumberForms {
  private readonly texts = new Set<string>();
  private readonly numbers = new Map<string, [holder: Record<string, unknown>, key: string][]>();

  /** @param document the values behind the row. @param scope the names of its columns. Rows are changed by `unify` */
  note(document: Document, row: ParseRow, scope: RowScope): ParseRow {
    for (const [column, value] of Object.entries(document))
      for (const name of scope.listNames(column))
        if (Object.hasOwn(row, name)) this.member(value, row, name, `.${name}`);
    return row;
  }

  unify(): void {
    for (const path of this.texts)
      for (const [holder, key] of this.numbers.get(path) ?? []) setOwn(holder, key, String(holder[key]));
  }

  private compare(stored: unknown, shown: unknown, path: string): void {
    if (Array.isArray(stored) && Array.isArray(shown) && stored.length === shown.length) {
      for (const [index, value] of stored.entries()) this.member(value, shown, index, `${path}[]`);
    } else if (isPlainObject(stored) && isPlainObject(shown)) {
      for (const key of Object.keys(shown))
        if (Object.hasOwn(stored, key)) this.member(stored[key], shown, key, `${path}.${key}`);
    }
  }

  private member(stored: unknown, parent: object, key: string | number, path: string): void {
    const holder = parent as Record<string, unknown>;
    const shown = holder[key];
    if (typeof shown === 'number') {
      const found = this.numbers.get(path) ?? [];
      found.push([holder, String(key)]);
      this.numbers.set(path, found);
    } else if (typeof shown === 'string') {
      const { _bsontype: type } = (stored ?? {}) as { _bsontype?: unknown };
      if (type === 'Long' || type === 'Decimal128' || typeof stored === 'bigint') this.texts.add(path);
    } else this.compare(stored, shown, path);
  }
}
