import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type AuditQuery,
  collectionSource,
  FilesAuditTrail,
  RecordSeal,
  type SealedRecord,
  verifyRecords,
} from '#audit';
import { MongoConnection } from '../connection/mongo-connection.js';
import { TestDatabase } from '../test-database.contract.js';
import { MongoAuditCollection } from './mongo-audit-collection.js';

const SEAL = new RecordSeal();
let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.start();
});
afterAll(() => database.stop());

let numbered = 0;
function collection(lifetime: number | null = null) {
  const name = `audit_${++numbered}_${Date.now()}`;
  const connection = new MongoConnection({ uri: database.uri, database: 'app' });
  const kept = new MongoAuditCollection({
    connection,
    database: name,
    collection: 'records',
    lifetime,
    ownsConnection: true,
  });
  return { kept, raw: () => connection.collection('records', name) };
}

function sealed(count: number, parts: (index: number) => object = () => ({}), chain = 'aa'): SealedRecord[] {
  const records: SealedRecord[] = [];
  for (let seq = 0; seq < count; seq += 1) {
    const at = new Date(Date.UTC(2026, 0, 1, 0, 0, seq)).toISOString();
    const prev = records.at(-1)?.hash ?? '';
    const content = { type: 'tool_call', at, success: true, chain, seq, prev, ...parts(seq) };
    records.push(SEAL.seal(content).record);
  }
  return records;
}

describe('a collection of audit records', () => {
  it('gives back what it was given, so that it still verifies, whatever names and texts hold', async () => {
    const { kept } = collection();
    expect(await kept.open()).toBeNull();
    const records = sealed(30, (index) => ({
      tool: `t\u0000\u202e${index}`,
      duration_ms: index / 7,
      rows: index * 1_000_000_007,
      filters: { 'Post.deep': ['$where', 'a.b'], $odd: [] },
      tenant_id: index % 2 ? 7 : 'acme',
      half: '\ud83d',
    }));
    await kept.insert(records);
    const result = await verifyRecords([collectionSource(kept)], { seal: SEAL });
    expect(result).toMatchObject({ faults: [], records: 30 });
    expect(await kept.open()).toMatchObject({ chain: 'aa', seq: 29, hash: records[29]?.hash });
    await kept.close();
  });

  it('keeps each record once, however often it is delivered', async () => {
    const { kept, raw } = collection();
    const records = sealed(6);
    await kept.insert(records.slice(0, 4));
    await kept.insert(records);
    expect(await raw().countDocuments()).toBe(6);
    await kept.close();
  });

  it('lets a record go only after its days, which are not part of what is sealed', async () => {
    const { kept, raw } = collection(86_400_000);
    await kept.open();
    await kept.insert(sealed(1));
    expect((await raw().findOne())?.['expires_at']).toEqual(new Date('2026-01-02T00:00:00.000Z'));
    const indexes = await raw().indexes();
    expect(indexes).toContainEqual(
      expect.objectContaining({ key: { expires_at: 1 }, expireAfterSeconds: 0 }),
    );
    expect((await verifyRecords([collectionSource(kept)], { seal: SEAL })).faults).toEqual([]);
    await kept.close();
  });

  it('is missed where somebody edits, removes or adds a document', async () => {
    const { kept, raw } = collection();
    await kept.insert(sealed(8));
    const first = async () => (await verifyRecords([collectionSource(kept)], { seal: SEAL })).faults[0];
    await raw().updateOne({ seq: 3 }, { $set: { success: false } });
    expect(await first()).toMatchObject({ kind: 'altered', seq: 3, source: 'mongodb' });
    await raw().updateOne({ seq: 3 }, { $set: { success: true } });
    expect(await first()).toBeUndefined();
    await raw().deleteOne({ seq: 5 });
    expect(await first()).toMatchObject({ kind: 'missing', seq: 5 });
    await raw().insertOne({ _id: 'aa:000000000000005', type: 'tool_call', note: 'nothing to see' });
    expect(await first()).toMatchObject({ kind: 'unreadable' });
    await kept.close();
  });

  it('finds what files find, page by page', async () => {
    const { kept } = collection();
    const records = sealed(23, (index) => ({
      tool: index % 3 ? 'query_class' : 'aggregate',
      agent_name: index % 2 ? 'reader' : 'writer',
      tenant_id: index % 2 ? 7 : 'acme',
      ...(index % 5 === 0 && { success: false, gate: 'fields', error_code: 'access_denied' }),
      ...(index === 4 && { correlation_id: 'c', trace_id: 't', principal: 'p' }),
      ...(index === 7 && { approver: 'key:1', approver_key: 'of-ada' }),
    }));
    await kept.insert(records);
    const files = new FilesAuditTrail([
      {
        name: 'log',
        group: 'files',
        async *read() {
          for (const value of records) yield await Promise.resolve({ line: 1, value });
        },
      },
    ]);
    const queries: AuditQuery[] = [
      {},
      { limit: 5 },
      { tool: 'aggregate', limit: 3 },
      { tenant: '7', limit: 4 },
      { tenant: 'acme', outcome: 'failure' },
      { from: '2026-01-01T00:00:05Z', to: '2026-01-01T00:00:15Z', limit: 4 },
      { gate: 'fields', code: 'access_denied' },
      { correlationId: 'c' },
      { traceId: 't', principal: 'p', agent: 'writer', type: 'tool_call' },
      { principal: '$ne' },
      { approver: 'key:1' },
      { approver: 'of-ada' },
    ];
    for (const query of queries) {
      let cursor: string | null = null;
      do {
        const page: AuditQuery = { ...query, ...(cursor && { cursor }) };
        const [held, read] = [await kept.search(page), await files.search(page)];
        expect(held).toEqual(read);
        ({ cursor } = held);
      } while (cursor !== null);
    }
    await kept.close();
  });

  it.each<[string, (kept: MongoAuditCollection) => Promise<unknown>]>([
    ['opened', (kept) => kept.open()],
    ['filled', (kept) => kept.insert(sealed(1))],
    ['searched', (kept) => kept.search({})],
    ['verified', (kept) => collectionSource(kept).read()[Symbol.asyncIterator]().next()],
  ])('says when it is %s that nobody is there, in a line that contains no address', async (_, use) => {
    const connection = new MongoConnection({ uri: 'mongodb://127.0.0.1:9', database: 'a', timeout: 500 });
    const kept = new MongoAuditCollection({
      connection,
      collection: 'records',
      lifetime: null,
      ownsConnection: true,
    });
    await expect(use(kept)).rejects.toMatchObject({
      name: 'AuditStoreError',
      message:
        'the collection of audit records cannot be used: nobody listens at its address; check its sink in audit.sinks',
      cause: { message: expect.stringContaining('127.0.0.1:9') as string },
    });
    await kept.close();
  });

  it('says when it is opened that a server does not answer', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const connection = new MongoConnection({
      uri: `mongodb://127.0.0.1:${port}`,
      database: 'a',
      timeout: 300,
    });
    const kept = new MongoAuditCollection({
      connection,
      collection: 'records',
      lifetime: null,
      ownsConnection: true,
    });
    await expect(kept.open()).rejects.toMatchObject({
      name: 'AuditStoreError',
      message: expect.stringContaining('it does not answer') as string,
    });
    await kept.close();
    silent.close();
  });
});
