import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PATIENT, storeErrorCode, unhurried } from '#data-contracts';
import { MongoSchemaCatalogue } from '../schema/mongo-schema-catalogue.js';
import { MongoRecordReader } from '../read/mongo-record-reader.js';
import { MongoConnection } from './mongo-connection.js';

describe('a connection', PATIENT, () => {
  /** Accepts connections and never answers: a database that hangs. */
  let silent: Server;
  let uri: string;
  let connection: MongoConnection;
  beforeEach(async () => {
    silent = createServer((socket) => socket.on('error', () => socket.destroy()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    uri = `mongodb://127.0.0.1:${(silent.address() as AddressInfo).port}/?directConnection=true`;
    connection = new MongoConnection({ uri, database: 'x', patience: 200 });
  });
  afterEach(async () => {
    await connection.close();
    silent.close();
  });

  it('calls a database that does not answer unavailable', async () => {
    const catalogue = new MongoSchemaCatalogue(connection);
    const reader = new MongoRecordReader(connection, catalogue);
    expect(await storeErrorCode(catalogue.snapshot())).toBe('unavailable');
    const count = reader.count({ className: 'Album', where: {} }, unhurried());
    expect(await storeErrorCode(count)).toBe('unavailable');
  });

  it('does not wait longer for a ping than it was told to', async () => {
    const patient = new MongoConnection({ uri, database: 'x', patience: 60_000 });
    expect(await storeErrorCode(patient.ping(50))).toBe('unavailable');
    await patient.close();
  });

  it('never repeats a URI it cannot read', () => {
    const attempt = () => new MongoConnection({ uri: 'mongodb://user:hunter2@[bad', database: 'x' });
    expect(attempt).toThrow(TypeError);
    expect(attempt).not.toThrow(/hunter2/);
  });

  it('may be closed twice', async () => {
    await connection.close();
    await connection.close();
    expect(await storeErrorCode(connection.ping(100))).toBe('unavailable');
  });
});
