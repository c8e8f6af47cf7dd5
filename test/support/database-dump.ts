import { BSON, MongoClient } from 'mongodb';
import { endWithFile } from './started.js';

/** Everything a database holds, byte for byte, for comparing before and after. */
export interface DatabaseView {
  /** Collections in order, rows by id, each as canonical extended JSON. */
  dump(): Promise<string>;
  client: MongoClient;
  close(): Promise<void>;
}

/** Its connection ends with the file at the latest. */
export function viewDatabase(uri: string, name = 'parley'): DatabaseView {
  const client = new MongoClient(uri);
  endWithFile(() => client.close());
  const db = client.db(name);
  return {
    client,
    dump: async () => {
      const collections = (await db.listCollections({}, { nameOnly: true }).toArray())
        .map((collection) => collection.name)
        .sort();
      const lines: string[] = [];
      for (const collection of collections) {
        const rows = await db
          .collection(collection)
          .find({}, { sort: { _id: 1 }, promoteValues: false })
          .toArray();
        for (const row of rows) lines.push(`${collection} ${BSON.EJSON.stringify(row, { relaxed: false })}`);
      }
      return lines.join('\n');
    },
    close: () => client.close(),
  };
}
