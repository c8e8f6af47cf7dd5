import type { Document } from '../../bson/document.js';
import { toKey } from '../../bson/key-string.js';
import { parseFieldPath, listValues, type FieldPath } from '../../bson/path.js';
import type { QueryContext } from '../../query/context.js';
import type { PAUSE } from '../../server/drain.js';
import { readPath } from '../expression.js';
import { visitAll } from '../stage.js';

type Building = Generator<typeof PAUSE, JoinTable>;

/** A hash of a collection by the values at one path: a join costs one lookup per value, not a scan. */
export class JoinTable {
  private readonly buckets = new Map<string, number[]>();

  private constructor(
    private readonly docs: readonly Document[],
    private readonly ctx: QueryContext,
  ) {}

  private static *of(
    docs: readonly Document[],
    ctx: QueryContext,
    valuesOf: (doc: Document) => unknown[],
  ): Building {
    const table = new JoinTable(docs, ctx);
    let position = 0;
    yield* visitAll(ctx, docs, (doc) => {
      table.add(position, valuesOf(doc));
      position += 1;
    });
    return table;
  }

  private add(position: number, values: unknown[]): void {
    for (const key of new Set(values.map((value) => toKey(value, this.ctx.collation)))) {
      const bucket = this.buckets.get(key);
      if (bucket) bucket.push(position);
      else this.buckets.set(key, [position]);
    }
  }

  /** As a query sees the path: arrays and their elements count, and missing is null. */
  static byQueryPath(docs: readonly Document[], path: string, ctx: QueryContext): Building {
    const parsed = parseFieldPath(path);
    return JoinTable.of(docs, ctx, (doc) =>
      listValues(doc, parsed, 'elements').map((value) => value ?? null),
    );
  }

  /** As an expression sees the path: one value, missing apart from null. */
  static byExpressionPath(docs: readonly Document[], path: string, ctx: QueryContext): Building {
    const parsed = parseFieldPath(path);
    return JoinTable.of(docs, ctx, (doc) => [readPath(doc, parsed, 0)]);
  }

  /** Documents with any of the values, in their own order. */
  find(values: readonly unknown[]): Document[] {
    const [only] = values;
    if (values.length === 1) return this.at(only).map((position) => this.docs[position] as Document);
    const positions = new Set<number>();
    for (const value of values) {
      this.ctx.tick();
      for (const position of this.at(value)) positions.add(position);
    }
    return [...positions].sort((a, b) => a - b).map((position) => this.docs[position] as Document);
  }

  private at(value: unknown): readonly number[] {
    return this.buckets.get(toKey(value, this.ctx.collation)) ?? [];
  }
}

/** The values a local field joins by: an array joins by its elements, a missing field as null. */
export const localValues = (doc: Document, path: FieldPath): unknown[] =>
  listValues(doc, path, 'whole').flatMap((value) =>
    Array.isArray(value) ? (value as unknown[]) : [value ?? null],
  );
