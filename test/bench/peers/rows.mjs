// What the servers that bring no tools of their own ask of the database.
import { MongoClient } from 'mongodb';

/** Milliseconds a query may take. */
const LIMIT = { maxTimeMS: 25_000 };

export async function openRows() {
  const { MONGODB_URI: uri, BENCH_DATABASE: database } = process.env;
  if (uri === undefined) throw new Error('MONGODB_URI is missing');
  const client = await MongoClient.connect(uri);
  return client.db(database);
}

export function findRows(database, { collection, filter, limit }) {
  return database
    .collection(collection)
    .find(filter, { limit, ...LIMIT })
    .toArray();
}

export function groupRows(database, { collection, pipeline }) {
  return database.collection(collection).aggregate(pipeline, LIMIT).toArray();
}

export function countRows(database, { collection, query }) {
  return database.collection(collection).countDocuments(query, LIMIT);
}
