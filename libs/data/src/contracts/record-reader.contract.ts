import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RecordReader } from '../record-adapters.js';
import type { FindQuery, IncludePlan, ParseRow } from '../record-store.js';
import { aggregationCases } from './aggregation.contract.js';
import { MUSIC_SEED } from './music-seed.js';
import { PATIENT, storeErrorCode, unhurried } from './operation.js';

export interface OpenReader {
  readonly reader: RecordReader;
  close(): Promise<void>;
}

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const date = (iso: string) => ({ __type: 'Date', iso });
const include = (field: string, targetClass: string, more: Partial<IncludePlan> = {}): IncludePlan => ({
  field,
  targetClass,
  where: {},
  include: [],
  ...more,
});

export interface ReaderCapabilities {
  /** Whether the store distinguishes an invalid pattern from an error of its own. Default true. */
  readonly tellsBadPatterns?: boolean;
  /** Whether Parse stores the rows: with rights, relations, and classes for users. Default true. */
  readonly ofParse?: boolean;
}

/** The contract of every record reader. @param open a store that contains only the given seed */
export function recordReaderContract(
  name: string,
  open: (seed: unknown) => Promise<OpenReader>,
  { tellsBadPatterns = true, ofParse = true }: ReaderCapabilities = {},
): void {
  describe(`${name} reads records`, PATIENT, () => {
    let store: OpenReader;
    beforeAll(async () => {
      store = await open(MUSIC_SEED);
    });
    afterAll(() => store.close());

    const find = (query: Partial<FindQuery> & Pick<FindQuery, 'className'>) =>
      store.reader.find({ where: {}, limit: 100, ...query }, unhurried());
    const ids = async (query: Partial<FindQuery>) =>
      (await find({ className: 'Album', order: [{ field: 'objectId', descending: false }], ...query })).map(
        (row) => row['objectId'],
      );
    const one = async (query: Partial<FindQuery> & Pick<FindQuery, 'className'>): Promise<ParseRow> => {
      const rows = await find(query);
      expect(rows).toHaveLength(1);
      return rows[0] as ParseRow;
    };

    it('answers a row in Parse form, every type as it was stored', async () => {
      const row = await one({ className: 'Album', where: { objectId: 'a1' } });
      const [seeded] = MUSIC_SEED.objects.Album;
      expect(row).toMatchObject({ ...seeded });
      if (ofParse) expect(row['fans']).toEqual({ __type: 'Relation', className: '_User' });
      expect((await one({ className: 'Album', where: { objectId: 'a4' } }))['thumbnail']).toEqual({
        __type: 'Bytes',
        base64: 'AQID',
      });
      expect((await one({ className: 'Artist', where: { objectId: 'ivy' } }))['home']).toEqual({
        __type: 'GeoPoint',
        latitude: 48.2,
        longitude: 16.4,
      });
    });

    it('counts the rows behind the first ones', async () => {
      const query = {
        className: 'Album',
        where: {},
        order: [{ field: 'objectId', descending: false }],
        limit: 5,
      };
      const rows = await store.reader.find(query, unhurried());
      const shown = await store.reader.findShown({ ...query, atMost: 2 }, unhurried());
      expect(shown).toMatchObject({ count: 5, rows: rows.slice(0, 2) });
    });

    it('answers an operation as the method of its kind does', async () => {
      const query = {
        className: 'Album',
        where: {},
        limit: 3,
        order: [{ field: 'objectId', descending: true }],
      };
      const run = store.reader.run({ kind: 'find', ...query }, unhurried(), 'operator');
      expect(await run).toEqual(await store.reader.find(query, unhurried()));
      const count = { kind: 'count', className: 'Album', where: {} } as const;
      expect(await store.reader.run(count, unhurried(), 'operator')).toBe(
        await store.reader.count(count, unhurried()),
      );
    });

    it.runIf(ofParse)('answers the ACL of a row', async () => {
      const row = await one({ className: 'Album', where: { objectId: 'a3' } });
      expect(row['ACL']).toEqual({ ada: { read: true, write: true } });
    });

    it.runIf(ofParse)('never answers a credential', async () => {
      const text = JSON.stringify(await find({ className: '_User' }));
      expect(text).toContain('ada@example.com');
      expect(text).not.toMatch(/password|\$2[aby]\$|_rperm|_wperm/);
    });

    const cases: [string, Record<string, unknown>, string[]][] = [
      ['everything without a constraint', {}, ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']],
      ['by object id', { objectId: { $in: ['a2', 'a9'] } }, ['a2']],
      ['by pointer', { artist: pointer('Artist', 'ivy') }, ['a1', 'a2']],
      [
        'by a list of pointers',
        { artist: { $in: [pointer('Artist', 'elm'), pointer('Artist', 'ivy')] } },
        ['a1', 'a2', 'a5'],
      ],
      ['rows that point elsewhere', { artist: { $ne: pointer('Artist', 'ivy') } }, ['a3', 'a4', 'a5', 'a6']],
      [
        'by a range of dates',
        { released: { $gte: date('2024-06-01T00:00:00.000Z'), $lt: date('2025-03-01T00:00:00.000Z') } },
        ['a2', 'a3'],
      ],
      ['by creation date', { createdAt: { $lt: date('2024-02-01T00:00:00.000Z') } }, ['a1']],
      ['by number', { price: { $gt: 8, $lte: 12 } }, ['a1', 'a2']],
      ['rows without a value', { price: null }, ['a6']],
      ['rows that have a field', { tags: { $exists: true } }, ['a1', 'a2', 'a3']],
      ['by a member of an array', { tags: 'live' }, ['a1']],
      ['by several members of an array', { tags: { $all: ['live', 'folk'] } }, ['a1']],
      ['by a pointer inside an array', { guests: pointer('Artist', 'oak') }, ['a1']],
      ['by a dotted path', { 'extra.discs': { $gte: 2 } }, ['a1']],
      ['by a date inside an object', { 'extra.mastered': date('2023-12-01T00:00:00.000Z') }, ['a1']],
      ['by text at the start', { title: { $regex: '^Nob' } }, ['a6']],
      ['by text whatever its case', { title: { $regex: '^nob', $options: 'i' } }, ['a6']],
      [
        'by either of two',
        { $or: [{ price: 20 }, { $and: [{ price: 8 }, { artist: pointer('Artist', 'elm') }] }] },
        ['a4', 'a5'],
      ],
      ['by neither of two', { $nor: [{ artist: pointer('Artist', 'ivy') }, { price: 8 }] }, ['a4', 'a6']],
    ];
    it.each(cases)('finds %s', async (_title, where, expected) => {
      expect(await ids({ where })).toEqual(expected);
      expect(await store.reader.count({ className: 'Album', where }, unhurried())).toBe(expected.length);
    });

    it('finds words, alone and beside other constraints', async () => {
      const words = { $text: { $search: 'nobody' } };
      expect(await ids({ where: words })).toEqual(['a6']);
      const beside = { $and: [{ price: null }, words] };
      expect(await ids({ where: beside })).toEqual(['a6']);
      expect(await store.reader.count({ className: 'Album', where: beside }, unhurried())).toBe(1);
      const pipeline = [{ $match: beside }, { $project: { title: 1 } }];
      const { rows } = await store.reader.aggregate({ className: 'Album', pipeline }, unhurried());
      expect(rows).toEqual([{ _id: 'a6', title: 'Nobody' }]);
    });

    it('finds places in order of distance and within an area', async () => {
      const vienna = { __type: 'GeoPoint', latitude: 48.2, longitude: 16.37 };
      const artists = (where: Record<string, unknown>) => ids({ className: 'Artist', where, order: [] });
      expect(await artists({ home: { $nearSphere: vienna } })).toEqual(['ivy', 'oak']);
      expect(await artists({ home: { $nearSphere: vienna, $maxDistanceInKilometers: 50 } })).toEqual(['ivy']);
      const corner = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });
      expect(await artists({ home: { $geoWithin: { $box: [corner(47, 15), corner(48, 16)] } } })).toEqual([
        'oak',
      ]);
      const beside = { $and: [{ name: { $exists: true } }, { home: { $nearSphere: vienna } }] };
      expect(await artists(beside)).toEqual(['ivy', 'oak']);
      const near = { home: { $nearSphere: vienna, $maxDistanceInKilometers: 50 } };
      expect(await store.reader.count({ className: 'Artist', where: near }, unhurried())).toBe(1);
    });

    it('sorts by several keys and pages without loss or repetition', async () => {
      const order = [
        { field: 'price', descending: true },
        { field: 'createdAt', descending: true },
      ];
      const where = { price: { $exists: true, $ne: null } };
      const pages = await Promise.all(
        [0, 2, 4].map(async (skip) =>
          (await find({ className: 'Album', where, order, skip, limit: 2 })).map((row) => row['objectId']),
        ),
      );
      expect(pages).toEqual([['a4', 'a2'], ['a1', 'a5'], ['a3']]);
    });

    it('answers the asked keys and the three every row has', async () => {
      const row = await one({
        className: 'Album',
        where: { objectId: 'a1' },
        keys: ['artist', 'extra.discs'],
      });
      expect(row).toEqual({
        objectId: 'a1',
        createdAt: '2024-01-10T12:00:00.000Z',
        updatedAt: '2024-01-10T12:00:00.000Z',
        artist: pointer('Artist', 'ivy'),
        extra: { discs: 2 },
      });
    });

    it('puts included rows in place of their pointers, as deep as planned', async () => {
      const plan = include('artist', 'Artist', {
        keys: ['name', 'label'],
        include: [include('label', 'Label', { keys: ['name'] })],
      });
      const row = await one({
        className: 'Album',
        where: { objectId: 'a1' },
        keys: ['title'],
        include: [plan],
      });
      expect(row['title']).toBe('Album a1');
      expect(row['artist']).toMatchObject({
        __type: 'Object',
        className: 'Artist',
        objectId: 'ivy',
        name: 'Ivy Row',
        label: { __type: 'Object', className: 'Label', objectId: 'north', name: 'North' },
      });
      expect(JSON.stringify(row)).not.toContain('secret');
      expect(row['artist']).not.toHaveProperty('home');
    });

    it('leaves the pointer bare when its row is not admitted or not there', async () => {
      const admitted = include('artist', 'Artist', { where: { name: { $ne: 'Ivy Row' } } });
      const rows = await find({
        className: 'Album',
        include: [admitted],
        order: [{ field: 'objectId', descending: false }],
      });
      expect(rows[0]?.['artist']).toEqual(pointer('Artist', 'ivy'));
      expect(rows[2]?.['artist']).toMatchObject({ __type: 'Object', name: 'Oak Lane' });
      const elm = await one({
        className: 'Artist',
        where: { objectId: 'elm' },
        include: [include('mentor', 'Artist')],
      });
      expect(elm['mentor']).toEqual(pointer('Artist', 'gone'));
    });

    it('includes pointers inside arrays, and through them further', async () => {
      const guests = include('guests', 'Artist', {
        keys: ['name', 'label'],
        include: [include('label', 'Label')],
      });
      const row = await one({ className: 'Album', where: { objectId: 'a1' }, include: [guests] });
      expect(row['guests']).toMatchObject([
        { __type: 'Object', objectId: 'oak', label: { __type: 'Object', name: 'South' } },
        pointer('Artist', 'gone'),
      ]);
    });

    it('includes pointers of rows found by distance', async () => {
      const home = { $nearSphere: { __type: 'GeoPoint', latitude: 48, longitude: 16 } };
      const rows = await find({ className: 'Artist', where: { home }, include: [include('label', 'Label')] });
      expect(rows.map((row) => row['label'])).toMatchObject([{ name: 'North' }, { name: 'South' }]);
    });

    aggregationCases(() => store.reader, ofParse);

    it('explains whether a query walks the whole class', async () => {
      const plan = async (where: Record<string, unknown>) =>
        JSON.stringify(await store.reader.explain({ className: 'Album', where }, unhurried()));
      expect(await plan({ price: 8 })).toContain('COLLSCAN');
      expect(await plan({ artist: pointer('Artist', 'ivy') })).toContain('IXSCAN');
    });

    it.runIf(ofParse)(
      'follows a relation of a row, and nowhere from a row or relation that is not there',
      async () => {
        const related = (objectId: string, key: string, limit = 10) =>
          store.reader.related({ className: 'Album', objectId, key, limit }, unhurried());
        expect((await related('a4', 'fans')).toSorted()).toEqual(['ada', 'bob']);
        expect(await related('a4', 'fans', 1)).toHaveLength(1);
        expect(await related('a2', 'fans')).toEqual([]);
        expect(await related('nobody', 'fans')).toEqual([]);
        expect(await related('a4', 'nothing')).toEqual([]);
        const holders = (members: readonly string[], key = 'fans') =>
          store.reader.related({ className: 'Album', members, key, limit: 10 }, unhurried());
        expect(new Set(await holders(['ada', 'bob']))).toEqual(new Set(['a4']));
        expect(await holders(['nobody'])).toEqual([]);
        expect(await holders(['ada'], 'nothing')).toEqual([]);
      },
    );

    it.skipIf(ofParse)('knows no relations, and refuses a name that is no class', async () => {
      const related = { className: 'Album', objectId: 'a4', key: 'fans', limit: 10 };
      expect(await store.reader.related(related, unhurried())).toEqual([]);
      for (const className of ['Nowhere', '_User', '_SCHEMA', 'system.views', 'album_rows']) {
        expect(await storeErrorCode(find({ className }))).toBe('invalid_query');
        const union = { className: 'Album', pipeline: [{ $unionWith: { coll: className } }] };
        expect(await storeErrorCode(store.reader.aggregate(union, unhurried()))).toBe('invalid_query');
      }
    });

    it.runIf(ofParse)('answers nothing for a class that does not exist', async () => {
      expect(await find({ className: 'Nowhere' })).toEqual([]);
      expect(await store.reader.count({ className: 'Nowhere', where: {} }, unhurried())).toBe(0);
    });

    it('says in its own words what went wrong', async () => {
      const stopped = unhurried({ signal: AbortSignal.abort() });
      expect(await storeErrorCode(store.reader.count({ className: 'Album', where: {} }, stopped))).toBe(
        'cancelled',
      );
      const bad = { className: 'Album', where: { title: { $regex: '(' } }, limit: 1 };
      expect(await storeErrorCode(store.reader.find(bad, unhurried()))).toBe(
        tellsBadPatterns ? 'invalid_query' : 'failed',
      );
      const stage = { className: 'Album', pipeline: [{ $group: { total: { $sum: 1 } } }] };
      expect(await storeErrorCode(store.reader.aggregate(stage, unhurried()))).toBe('invalid_query');
      const month = { $month: { date: '$createdAt', timezone: 'Mars/Phobos' } };
      const zoned = { className: 'Album', pipeline: [{ $group: { _id: month } }] };
      expect(await storeErrorCode(store.reader.aggregate(zoned, unhurried()))).toBe('unknown_time_zone');
    });
  });
}
