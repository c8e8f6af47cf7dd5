import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MUSIC_SEED, PATIENT, unhurried } from '#data/contracts';
import type { GovernedPipeline } from '#policy';
import { INTERNAL_COLUMNS } from '../storage/parse-storage.js';
import { TestDatabase } from '../test-database.contract.js';

const PLANTED = 'planted-secret';

describe('columns Parse keeps for itself', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  beforeAll(async () => {
    database = await TestDatabase.start();
    store = await database.open(MUSIC_SEED);
    const secrets = Object.fromEntries(
      [...INTERNAL_COLUMNS, '_auth_data_github'].map((column) => [column, [PLANTED]]),
    );
    await store.connection.collection('_User').updateMany({}, { $set: secrets });
    await store.connection
      .collection('Artist')
      .updateMany({}, { $set: { _tombstone: PLANTED, _acl: { [PLANTED]: {} } } });
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  const laundry: [string, GovernedPipeline][] = [
    ['as they are', [{ $limit: 5 }]],
    ['as keys and values', [{ $project: { pairs: { $objectToArray: '$$ROOT' } } }]],
    ['as whole rows in a list', [{ $group: { _id: null, rows: { $push: '$$ROOT' } } }]],
    ['merged into another object', [{ $replaceWith: { inner: { $mergeObjects: ['$$ROOT', { a: 1 }] } } }]],
    [
      'behind a filter and a sort',
      [{ $match: {} }, { $sort: { createdAt: 1 } }, { $project: { pairs: { $objectToArray: '$$ROOT' } } }],
    ],
    ['in a branch', [{ $facet: { a: [{ $project: { pairs: { $objectToArray: '$$ROOT' } } }] } }]],
    [
      'by name',
      [
        {
          $project: {
            a: '$_tombstone',
            b: { $getField: '_perishable_token' },
            c: '$$ROOT._email_verify_token',
          },
        },
      ],
    ],
    [
      'through a join',
      [
        {
          $lookup: {
            from: '_User',
            as: 'u',
            pipeline: [{ $project: { pairs: { $objectToArray: '$$ROOT' } } }],
          },
        },
      ],
    ],
    ['through a union', [{ $unionWith: '_User' }, { $project: { pairs: { $objectToArray: '$$ROOT' } } }]],
    [
      'through a join inside a join',
      [
        {
          $lookup: {
            from: 'Label',
            as: 'l',
            pipeline: [
              { $lookup: { from: '_User', as: 'u', pipeline: [] } },
              { $project: { pairs: { $objectToArray: { $first: '$u' } } } },
            ],
          },
        },
      ],
    ],
  ];
  it.each(laundry)('never leave through a pipeline %s', async (_title, pipeline) => {
    for (const className of ['_User', 'Label']) {
      const { rows } = await store.reader.aggregate({ className, pipeline }, unhurried());
      expect(rows.length).toBeGreaterThan(0);
      expect(JSON.stringify(rows)).not.toContain(PLANTED);
    }
  });

  it('never leave through a graph of rows', async () => {
    const graph = {
      from: '_User',
      startWith: '$username',
      connectFromField: 'username',
      connectToField: 'username',
      as: 'same',
    };
    const pipeline = [
      { $graphLookup: graph },
      { $project: { pairs: { $objectToArray: { $first: '$same' } } } },
    ];
    const { rows } = await store.reader.aggregate({ className: '_User', pipeline }, unhurried());
    expect(JSON.stringify(rows)).toContain('ada@example.com');
    expect(JSON.stringify(rows)).not.toContain(PLANTED);
  });

  it('never leave through a find, an include or a change', async () => {
    const where = { _rperm: PLANTED };
    const rows = await store.reader.find({ className: '_User', where, limit: 5 }, unhurried());
    expect(rows).toHaveLength(2);
    const mentor = { field: 'mentor', targetClass: 'Artist', where: {}, include: [] };
    const artists = await store.reader.find(
      { className: 'Artist', where: {}, limit: 5, include: [mentor] },
      unhurried(),
    );
    const changed = await store.writer.update('Artist', 'ivy', { name: 'Ivy' }, {}, unhurried());
    const readable = JSON.stringify([rows, artists, changed], (key, value: unknown) =>
      key === 'ACL' ? undefined : value,
    );
    expect(readable).toContain('Oak Lane');
    expect(readable).not.toContain(PLANTED);
  });
});

describe('results of pipelines', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  beforeAll(async () => {
    database = await TestDatabase.start();
    store = await database.open(MUSIC_SEED);
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });
  const run = async (className: string, ...pipeline: GovernedPipeline) =>
    (await store.reader.aggregate({ className, pipeline }, unhurried())).rows;

  it('hold places, files and dates in their JSON forms wherever the stages carried them', async () => {
    const rows = await run(
      'Album',
      { $match: { objectId: 'a2' } },
      { $lookup: { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'who' } },
      { $project: { cover: 1, released: 1, who: 1, homes: '$who.home' } },
    );
    expect(rows).toMatchObject([
      {
        _id: 'a2',
        released: '2024-06-01T00:00:00.000Z',
        cover: { __type: 'File', name: 'a2.png' },
        who: [
          {
            _id: 'ivy',
            home: { __type: 'GeoPoint', latitude: 48.2, longitude: 16.4 },
            _p_label: 'Label$north',
          },
        ],
      },
    ]);
  });

  it('keep two plain numbers as they are', async () => {
    const rows = await run(
      'Artist',
      { $match: { objectId: 'ivy' } },
      { $project: { pair: { $literal: [1, 2] } } },
    );
    expect(rows).toEqual([{ _id: 'ivy', pair: [1, 2] }]);
  });
});
