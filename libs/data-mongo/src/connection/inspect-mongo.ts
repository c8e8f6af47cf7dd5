import type { Document } from 'mongodb';
import { StoreError } from '#data';
import { asSearchOperation, asStoreOperation } from '../errors.js';
import type { MongoConnection } from './mongo-connection.js';

/** What an operator should check about the configured database. */
export interface MongoFacts {
  readonly version: string;
  readonly topology: 'replica set' | 'sharded cluster' | 'standalone';
  /** The same for all addresses of one server or replica set; null: it does not say. */
  readonly server: string | null;
  /** Whether the search stages are available; null: unknown. */
  readonly search: boolean | null;
  /** What the user of the connection may do in the database; null: nobody is logged in. */
  readonly rights: { readonly read: boolean; readonly write: boolean } | null;
  /** Milliseconds that the server's clock is ahead of the process clock, accurate to the round-trip time. */
  readonly clockAhead: number;
}

/** Reads server information with commands that read no row. @throws StoreError when a command fails */
export async function inspectMongo(connection: MongoConnection, timeoutMs: number): Promise<MongoFacts> {
  const signal = AbortSignal.timeout(timeoutMs);
  const command = (document: Document) =>
    asStoreOperation({ signal }, async () => connection.ask(document, signal));
  const sentAt = Date.now();
  const hello = await command({ hello: 1 });
  const answeredAt = Date.now();
  const { version } = await command({ buildInfo: 1 });
  // The commands before are answered without a login.
  await command({
    listCollections: 1,
    nameOnly: true,
    authorizedCollections: true,
    cursor: { batchSize: 1 },
  });
  const there: unknown = hello['localTime'];
  return {
    version: String(version),
    topology:
      hello['msg'] === 'isdbgrid'
        ? 'sharded cluster'
        : typeof hello['setName'] === 'string'
          ? 'replica set'
          : 'standalone',
    server: identifyServer(hello),
    rights: rightsIn(connection, await command({ connectionStatus: 1, showPrivileges: true })),
    search: connection.isPerTenant ? null : await hasSearch(connection, signal),
    clockAhead: there instanceof Date ? there.getTime() - (sentAt + answeredAt) / 2 : 0,
  };
}

/** A set names itself and its members, and a single server its process. */
function identifyServer({ setName, hosts, topologyVersion }: Document): string | null {
  if (typeof setName === 'string') return JSON.stringify([setName, ...[...(hosts as string[])].sort()]);
  const { processId } = (topologyVersion ?? {}) as { processId?: object };
  return processId === undefined ? null : JSON.stringify(processId);
}

interface Privilege {
  readonly resource?: { readonly db?: string; readonly anyResource?: boolean };
  readonly actions?: readonly string[];
}

/** What `connectionStatus` says of the user, who may be permitted some collections alone. */
function rightsIn(connection: MongoConnection, { authInfo }: Document): MongoFacts['rights'] {
  const { authenticatedUsers: users, authenticatedUserPrivileges: privileges } = (authInfo ?? {}) as {
    authenticatedUsers?: unknown[];
    authenticatedUserPrivileges?: Privilege[];
  };
  if (!users?.length || !privileges) return null;
  const may = (action: string) =>
    privileges.some(({ resource, actions }) => {
      const { db, anyResource } = resource ?? {};
      const isHere = anyResource === true || db === '' || (db !== undefined && connection.covers(db));
      return isHere && actions?.includes(action) === true;
    });
  return { read: may('find'), write: may('insert') && may('update') };
}

/** Whether the search stages are available; null: unknown. */
export async function hasSearch(connection: MongoConnection, signal: AbortSignal): Promise<boolean | null> {
  try {
    await asSearchOperation({ signal }, () =>
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
