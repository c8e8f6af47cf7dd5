import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { firstValueFrom } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ParseRow } from '#data';
import {
  loadSeed,
  MongoChangeFeed,
  MongoConnection,
  MongoRecordReader,
  MongoRecordWriter,
  MongoSchemaCatalogue,
  parseSeed,
} from '#data-mongo';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { type ParseServerProcess, startParseServer } from '../../support/parse-server-process.js';

const seed = parseSeed(JSON.parse(readFileSync(new URL('../../../demo/seed.json', import.meta.url), 'utf8')));
const limits = () => ({ maxTimeMS: 30_000, comment: 'scenario', signal: new AbortController().signal });
const classNames = [...seed.objects.keys()];

/** What Parse Server adds on the way out and a database does not hold. */
function asStored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asStored);
  if (typeof value !== 'object' || value === null) return value;
  const { url, ...file } = value as ParseRow;
  const members = file['__type'] === 'File' ? file : { ...file, ...(url !== undefined && { url }) };
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, asStored(member)]));
}

describe('a Parse Server on a seeded database', { timeout: 120_000 }, () => {
  let embedded: EmbeddedMongo;
  let connection: MongoConnection;
  let catalogue: MongoSchemaCatalogue;
  let reader: MongoRecordReader;
  let writer: MongoRecordWriter;
  let parse: ParseServerProcess;

  beforeAll(async () => {
    embedded = await EmbeddedMongo.start();
    const uri = new URL(embedded.uri);
    uri.pathname = '/shop';
    connection = new MongoConnection({ uri: uri.href });
    await loadSeed(connection, seed);
    parse = await startParseServer(uri.href);
    catalogue = new MongoSchemaCatalogue(connection);
    reader = new MongoRecordReader(connection, catalogue);
    writer = new MongoRecordWriter(connection, catalogue);
  }, 120_000);
  afterAll(async () => {
    await parse?.close();
    await connection?.close();
    await embedded?.close();
  });

  const overRest = async (
    className: string,
    query: Readonly<Record<string, unknown>>,
  ): Promise<ParseRow[]> => {
    const answer = await parse.call('GET', `/classes/${className}`, { master: true, query });
    expect(answer).toMatchObject({ status: 200 });
    return asStored(answer.body['results']) as ParseRow[];
  };
  const direct = (className: string, where: Record<string, unknown>, limit = 1000): Promise<ParseRow[]> =>
    reader.find({ className, where, limit, order: [{ field: 'objectId', descending: false }] }, limits());

  it.each(classNames)('answers every row of %s as the direct route does', async (className) => {
    const rows = await overRest(className, { limit: '1000', order: 'objectId' });
    expect(rows.length).toBeGreaterThan(0);
    expect(await direct(className, {})).toEqual(rows);
  });

  it('knows the classes, fields and permissions that the direct route knows', async () => {
    const answer = await parse.call('GET', '/schemas', { master: true });
    catalogue.invalidate();
    const snapshot = await catalogue.snapshot();
    for (const { className, fields, classLevelPermissions } of answer.body['results'] as ParseRow[]) {
      if (!classNames.includes(String(className))) continue;
      const schema = snapshot.get(String(className));
      expect(Object.fromEntries(schema?.fields ?? [])).toEqual(fields);
      expect(schema?.classLevelPermissions).toEqual(classLevelPermissions);
    }
  });

  const artists = seed.objects.get('Artist') ?? [];
  const artist = fc.constantFrom(...artists.slice(0, 12)).map(({ objectId }) => ({
    __type: 'Pointer',
    className: 'Artist',
    objectId,
  }));
  const moment = fc
    .date({ min: new Date('1995-01-01'), max: new Date('2026-12-31'), noInvalidDate: true })
    .map((date) => ({ __type: 'Date', iso: date.toISOString() }));
  const tag = fc.constantFrom('live', 'debut', 'reissue', 'double', 'unheard');
  const comparison = (value: fc.Arbitrary<unknown>) =>
    fc.dictionary(fc.constantFrom('$lt', '$lte', '$gt', '$gte', '$ne'), value, { minKeys: 1, maxKeys: 2 });
  const simple = fc.oneof(
    fc.record({
      artist: fc.oneof(artist, fc.record({ $in: fc.array(artist) }), fc.record({ $nin: fc.array(artist) })),
    }),
    fc.record({ released: comparison(moment) }),
    fc.record({ createdAt: comparison(moment) }),
    fc.record({ trackCount: comparison(fc.integer({ min: 3, max: 9 })) }),
    fc.record({
      tags: fc.oneof(
        tag,
        fc.record({ $all: fc.array(tag, { minLength: 1 }) }),
        fc.record({ $in: fc.array(tag) }),
      ),
    }),
    fc.record({
      archived: fc.oneof(
        fc.boolean(),
        fc.record({ $ne: fc.constant(true) }),
        fc.record({ $exists: fc.boolean() }),
      ),
    }),
    fc.record({
      title: fc.record({ $regex: fc.constantFrom('^C', 'rain', 'x'), $options: fc.constantFrom('m', 'i') }),
    }),
    fc.record({ cover: fc.record({ $exists: fc.boolean() }) }),
  );
  const { where } = fc.letrec<{ where: Record<string, unknown> }>((tie) => ({
    where: fc.oneof(
      { maxDepth: 3 },
      simple,
      fc.record({ $or: fc.array(tie('where'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ $and: fc.array(tie('where'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ $nor: fc.array(tie('where'), { minLength: 1, maxLength: 2 }) }),
    ),
  }));

  it('finds what the direct route finds, whatever the constraint', async () => {
    await fc.assert(
      fc.asyncProperty(where, async (constraint) => {
        const rows = await overRest('Album', {
          where: constraint,
          limit: '1000',
          order: 'objectId',
          keys: 'objectId',
        });
        const found = await direct('Album', constraint);
        expect(found.map((row) => row['objectId'])).toEqual(rows.map((row) => row['objectId']));
      }),
      { numRuns: 60 },
    );
  });

  it('lets the demo accounts log in, with the roles and rows the seed gave them', async () => {
    const login = await parse.call('POST', '/login', {
      body: { username: 'north.clerk', password: 'demo-password' },
    });
    expect(login.body).toMatchObject({ objectId: 'uNorthClk1', orgId: 'northside' });
    const session = String(login.body['sessionToken']);
    const mine = await parse.call('GET', '/classes/Order', { session, query: { limit: '1000' } });
    const orgs = (mine.body['results'] as ParseRow[]).map((row) => row['orgId']);
    expect(new Set(orgs)).toEqual(new Set(['northside']));
    const refused = await parse.call('GET', '/classes/SupplierContract', { session });
    expect(refused.body).toMatchObject({ code: 119 });
  });

  it('honours the seeded sessions and the roles above a role', async () => {
    const me = await parse.call('GET', '/users/me', { session: 'r:demo-admin' });
    expect(me.body).toMatchObject({ objectId: 'uDemoAdmin' });
    const listings = (session: string) =>
      parse.call('GET', '/classes/Listing', { session, query: { limit: '1' } });
    expect(JSON.stringify((await listings('r:demo-admin')).body)).toContain('costPrice');
    expect(JSON.stringify((await listings('r:demo-north-clerk')).body)).not.toContain('costPrice');
  });

  it('follows seeded relations', async () => {
    const [relation] = seed.relations;
    const object = { __type: 'Pointer', className: 'Playlist', objectId: relation?.owningId };
    const followers = await overRest('Customer', {
      where: { $relatedTo: { object, key: 'followers' } },
      limit: '100',
    });
    const expected = seed.relations.filter(({ owningId }) => owningId === relation?.owningId);
    expect(new Set(followers.map((row) => row['objectId']))).toEqual(
      new Set(expected.map(({ relatedId }) => relatedId)),
    );
  });

  it('reads what the direct route wrote, and the other way round', async () => {
    const fields = {
      title: 'Direct',
      artist: { __type: 'Pointer', className: 'Artist', objectId: artists[0]?.['objectId'] },
      released: { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' },
      tags: ['a', { when: { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' } }],
      ACL: { '*': { read: true }, uDemoAdmin: { read: true, write: true } },
    };
    const written = await writer.create('Album', fields, limits());
    expect(await overRest('Album', { where: { objectId: written['objectId'] } })).toEqual([written]);
    const made = await parse.call('POST', '/classes/Album', {
      master: true,
      body: { ...fields, title: 'Over REST' },
    });
    const [row] = await direct('Album', { objectId: made.body['objectId'] });
    expect(row).toMatchObject({ ...fields, title: 'Over REST' });
    const changed = {
      title: 'Changed',
      tags: { __op: 'Remove', objects: ['a'] },
      released: { __op: 'Delete' },
    };
    const updated = await writer.update('Album', String(made.body['objectId']), changed, {}, limits());
    expect(await overRest('Album', { where: { objectId: made.body['objectId'] } })).toEqual([updated]);
  });

  it('is followed by the change feed', async () => {
    const changes = new MongoChangeFeed(connection, catalogue).changes('Playlist');
    const first = firstValueFrom(changes);
    let settled = false;
    void first.finally(() => (settled = true));
    while (!settled) {
      await parse.call('POST', '/classes/Playlist', {
        master: true,
        body: { title: 'From afar', mood: 'rain' },
      });
    }
    const change = await first;
    expect(change).toMatchObject({ className: 'Playlist', kind: 'create', row: { title: 'From afar' } });
    expect(await overRest('Playlist', { where: { objectId: change.objectId } })).toEqual([change.row]);
  });
});
