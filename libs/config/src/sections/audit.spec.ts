import { describe, expect, it } from 'vitest';
import { ConfigError } from '../config-error.js';
import { readConfig } from '../load-config.js';
import { listPlaces } from '../checks/audit-checks.js';

const SERVICE = 'mongodb://parley:secret@Db-1.example.net,db-2.example.net:27018/shop?replicaSet=rs0';

function errorsOf(uri: string, ...sinks: readonly object[]): string[] {
  try {
    readConfig({ audit: { sinks } as never, database: { uri, name: 'shop' } });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.issues.map(({ path }) => path);
  }
}
const placesIn = (uri: string, ...sinks: readonly object[]) =>
  readConfig({ audit: { sinks } as never, database: { uri, name: 'shop' } }).config.audit.sinks.map((one) =>
    listPlaces(one, uri),
  );
const sink = (uri: string | null, database: string, collection = 'records') => ({
  kind: 'mongodb',
  uri,
  database,
  collection,
});

describe('a collection of records', () => {
  it.each([
    null,
    SERVICE,
    'mongodb://db-1.example.net/',
    'mongodb://auditor:p%40ss@DB-1.EXAMPLE.NET:27017/admin?tls=true',
    'mongodb://db-3.example.net,db-2.example.net:27018/?replicaSet=rs0',
  ])('is never in the database that agents read, however its server is named: %s', (uri) => {
    expect(errorsOf(SERVICE, sink(uri, 'shop'))).toEqual(['audit.sinks.0.database']);
    expect(errorsOf(SERVICE, sink(uri, 'shop_audit'))).toEqual([]);
  });

  it.each([
    'mongodb://db-2.example.net/',
    'mongodb://db-1.example.net:27018/',
    'mongodb+srv://db-1.example.net/',
  ])('may have the name of that database on another server: %s', (uri) => {
    expect(errorsOf(SERVICE, sink(uri, 'shop'))).toEqual([]);
  });

  it('is that of one sink alone', () => {
    const one = sink('mongodb://a@db-1/', 'audit');
    expect(errorsOf(SERVICE, one, sink('mongodb://db-2/', 'audit'))).toEqual([]);
    expect(errorsOf(SERVICE, one, sink('mongodb://b@db-2,db-1/', 'audit'))).toEqual(['audit.sinks.1']);
    expect(errorsOf(SERVICE, one, sink('mongodb://b@db-1/', 'audit', 'others'))).toEqual([]);
  });

  it('is that of the database where it names no server', () => {
    const places = placesIn(
      SERVICE,
      sink(null, 'audit'),
      sink('mongodb://db-2.example.net:27018', 'audit', 'b'),
    );
    expect(places).toEqual([
      ['mongodb db-1.example.net:27017 audit records', 'mongodb db-2.example.net:27018 audit records'],
      ['mongodb db-2.example.net:27018 audit b'],
    ]);
    expect(placesIn('embedded', sink(null, 'audit'))).toEqual([['mongodb embedded audit records']]);
  });
});
