import type { Document } from 'mongodb';
import { StoreError } from '#data';
import type { SchemaSnapshot } from '#policy';
import { SIMPLE_COLLATION } from '../connection/collation.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { createStorage } from '../storage/stored-classes.js';

/** Values of a column that are looked up. */
const SAMPLE_SIZE = 20;
/** References that are looked at, of all classes. */
const MOST_REFERENCES = 100;
const LIMITS = { maxTimeMS: 2_000, comment: 'parley doctor', ...SIMPLE_COLLATION };

/** A reference of a plain class, with values that no document of its target has as `_id`. */
export interface DanglingReference {
  readonly className: string;
  readonly field: string;
  readonly targetClass: string;
  /** Values in the sample, and those of them that lead nowhere. */
  readonly asked: number;
  readonly missing: number;
}

/**
 * Looks up a few values of each reference of plain classes. One that takes too long is left out.
 * @throws StoreError `unavailable`
 */
export async function countDanglingReferences(
  connection: MongoConnection,
  classes: SchemaSnapshot,
): Promise<readonly DanglingReference[]> {
  const dangling: DanglingReference[] = [];
  for (const { schema, field, target } of referencesIn(classes)) {
    const { className } = schema;
    try {
      const counts = await lookUp(connection, {
        from: createStorage(schema),
        column: createStorage(schema).column(field),
        to: createStorage(target),
      });
      if (counts.missing > 0) dangling.push({ className, field, targetClass: target.className, ...counts });
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'unavailable') throw error;
    }
  }
  return dangling;
}

function referencesIn(classes: SchemaSnapshot) {
  const plain = classes.classNames().flatMap((name) => classes.get(name) ?? []);
  const references = plain
    .filter(({ storage }) => storage === 'plain')
    .flatMap((schema) =>
      [...schema.fields].flatMap(([field, { targetClass }]) => {
        const target = targetClass === undefined ? undefined : classes.get(targetClass);
        return target ? [{ schema, field, target }] : [];
      }),
    );
  return references.slice(0, MOST_REFERENCES);
}

async function lookUp(
  connection: MongoConnection,
  { from, column, to }: { readonly from: ClassStorage; readonly column: string; readonly to: ClassStorage },
): Promise<{ readonly asked: number; readonly missing: number }> {
  return asStoreOperation(undefined, async () => {
    const rows = await connection
      .holding(from)
      .db.collection(from.collection)
      .find(
        { [column]: { $ne: null } },
        { projection: { [column]: 1, _id: 0 }, limit: SAMPLE_SIZE, ...LIMITS },
      )
      .toArray();
    const values = new Map(
      rows
        .flatMap((row: Document): unknown[] => (Array.isArray(row[column]) ? row[column] : [row[column]]))
        .filter((value) => value !== null)
        .map((value) => [JSON.stringify(value), value] as const),
    );
    const asked = [...values.values()].slice(0, SAMPLE_SIZE);
    const found = await connection
      .holding(to)
      .collection(to.collection)
      .find({ _id: { $in: asked as string[] } }, { projection: { _id: 1 }, ...LIMITS })
      .toArray();
    return { asked: asked.length, missing: asked.length - found.length };
  });
}
