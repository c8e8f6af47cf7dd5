import type { IndexDescription } from 'mongodb';
import type { OperationContext } from '#data';
import type { FieldSchema } from '#policy';
import type { MongoConnection } from '../connection/mongo-connection.js';

/** `$near` and `$nearSphere` need an index on their column. Parse Server makes one when it is first asked for. */
export function geoIndexes(fields: Iterable<readonly [string, FieldSchema]>): IndexDescription[] {
  return [...fields].flatMap(([name, { type }]) =>
    type === 'GeoPoint' ? [{ name: `${name}_2dsphere`, key: { [name]: '2dsphere' } }] : [],
  );
}

/** Makes the indexes of new columns. A write does not fail for want of one: the operator may not permit it. */
export async function makeGeoIndexes(
  connection: MongoConnection,
  className: string,
  fields: Iterable<readonly [string, FieldSchema]>,
  { maxTimeMS, comment }: OperationContext,
): Promise<void> {
  const indexes = geoIndexes(fields);
  if (indexes.length === 0) return;
  await connection
    .collection(className)
    .createIndexes(indexes, { maxTimeMS, comment })
    .catch(() => undefined);
}
