import type { Document } from 'mongodb';
import { StoreError } from '#data';
import { asSearchOperation } from '../search/search-errors.js';
import { asStoreOperation } from '../errors.js';
import type { MongoConnection } from './mongo-connection.js';

/** What an operator should know of the database that is configured. */
export interface MongoFacts {
  readonly version: string;
  readonly topology: 'replica set' | 'sharded cluster' | 'standalone';
  /** Whether the search stages are there; null: it could not be told. */
  readonly search: boolean | null;
  /** Milliseconds that its clock is ahead of ours, to within the time of the answer. */
  readonly clockAhead: number;
}

/** Asks the server about itself, in three commands that read no row. @throws StoreError when it cannot be asked */
export async function inspectMongo(connection: MongoConnection, timeoutMs: number): Promise<MongoFacts> {
  const signal = AbortSignal.timeout(timeoutMs);
  const command = (document: Document) =>
    asStoreOperation(signal, () => connection.db.command(document, { signal }));
  const asked = Date.now();
  const hello = await command({ hello: 1 });
  const answered = Date.now();
  const { version } = await command({ buildInfo: 1 });
  const there: unknown = hello['localTime'];
  return {
    version: String(version),
    topology:
      hello['msg'] === 'isdbgrid'
        ? 'sharded cluster'
        : typeof hello['setName'] === 'string'
          ? 'replica set'
          : 'standalone',
    search: await hasSearch(connection, signal),
    clockAhead: there instanceof Date ? there.getTime() - (asked + answered) / 2 : 0,
  };
}

async function hasSearch(connection: MongoConnection, signal: AbortSignal): Promise<boolean | null> {
  try {
    await asSearchOperation(signal, () =>
      connection
        .collection('_SCHEMA')
        .aggregate([{ $listSearchIndexes: {} }], { signal })
        .toArray(),
    );
    return true;
  } catch (error) {
    const code = error instanceof StoreError ? error.code : null;
    return code === 'search_not_configured' || code === 'unsupported' ? false : null;
  }
}
