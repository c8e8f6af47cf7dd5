import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, type Service, startService } from '../../support/service.js';

const MADE = '2025-01-02T10:00:00.000Z';
const to = (targetClass: string) => ({ type: 'Pointer', targetClass });
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const fields = { title: { type: 'String' }, price_total: { type: 'Number' }, author: to('Author') };
const BOOKS = [
  {
    objectId: 'b1',
    title: 'One',
    price_total: 3,
    author: pointer('Author', 'a1'),
    createdAt: MADE,
    updatedAt: MADE,
  },
  { objectId: 'b2', title: 'Two', price_total: 4, author: null, createdAt: MADE, updatedAt: MADE },
];
const SEED = {
  schemas: [
    { className: 'Author', fields: { name: { type: 'String' } } },
    { className: 'Book', fields },
    { className: 'Listed', fields },
  ],
  objects: {
    Author: [{ objectId: 'a1', name: 'Ann', createdAt: MADE, updatedAt: MADE }],
    Book: BOOKS,
    Listed: BOOKS,
  },
};
const CONFIG = {
  agents: { analyst: { permissions: 'readonly', rateLimit: 1_000_000 } },
  auth: [{ anonymous: true, agent: 'analyst' }],
  policy: {
    unlistedClasses: 'allow',
    classes: {
      Listed: {
        fields: ['title', 'cost', 'author'],
        properties: { cost: { field: 'price_total' } },
      },
    },
  },
};

let parse: ParseUnderTest;
const services = new Map<string, Service>();
beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill(SEED);
  services.set('mongo_direct', await startService({ seed: SEED, config: CONFIG }));
  services.set(
    'parse_server',
    await startService({ config: { ...CONFIG, database: { uri: null }, parse: parse.config } }),
  );
}, 120_000);
afterAll(async () => {
  for (const service of services.values()) await service.stop();
  await parse?.stop();
});

describe.each(['mongo_direct', 'parse_server'])('rows of a pipeline on the route %s', (route) => {
  const aggregate = async (className: string, ...stages: object[]) => {
    const pipeline = [{ $sort: { title: 1 } }, ...stages];
    const answer = await callTool(services.get(route) as Service, 'aggregate', {
      class_name: className,
      pipeline,
    });
    expect([answer.text, answer.isError]).toEqual([answer.text, false]);
    expect(answer.data['route']).toBe(route);
    return answer.data['results'] as Record<string, unknown>[];
  };
  const first = { $limit: 1 };

  describe.each(['Book', 'Listed'])('of %s', (className) => {
    it.each([
      [
        { objectId: 1, createdAt: 1, updatedAt: 1 },
        { objectId: 'b1', createdAt: MADE, updatedAt: MADE },
      ],
      [{ _created_at: 1 }, { _id: 'b1', _created_at: MADE }],
      [{ title: 1 }, { _id: 'b1', title: 'One' }],
      [{ created_at: 1 }, { _id: 'b1', created_at: MADE }],
      [
        { objectId: 1, author: 1 },
        { objectId: 'b1', author: 'a1' },
      ],
      [{ objectId: 0, createdAt: 1 }, { createdAt: MADE }],
      [
        { createdAt: 1, made: '$createdAt' },
        { _id: 'b1', createdAt: MADE, made: MADE },
      ],
    ])('carry the names that a projection wrote: %j', async (projection, row) => {
      expect(await aggregate(className, first, { $project: projection })).toEqual([row]);
    });

    it('carry them behind further stages', async () => {
      const stages = [
        { $project: { objectId: 1, createdAt: 1, price_total: 1 } },
        { $match: { createdAt: { $gte: '2025-01-01' } } },
        { $sort: { createdAt: -1, objectId: -1 } },
        { $set: { createdAt: { $dateToString: { date: '$createdAt', format: '%Y' } } } },
      ];
      expect(await aggregate(className, ...stages)).toEqual([
        { objectId: 'b2', createdAt: '2025', price_total: 4 },
        { objectId: 'b1', createdAt: '2025', price_total: 3 },
      ]);
    });

    it('name a pointer by its field where it is empty', async () => {
      const rows = await aggregate(className, { $project: { _id: 0, author: 1 } });
      expect(rows).toEqual([{ author: 'a1' }, { author: null }]);
      expect(await aggregate(className, { $skip: 1 }, { $project: { _id: 0, author: 1 } })).toEqual([
        { author: null },
      ]);
    });

    it('keep the names of the database where the pipeline writes none', async () => {
      expect(await aggregate(className, first)).toEqual([
        { _id: 'b1', _created_at: MADE, _updated_at: MADE, title: 'One', price_total: 3, author: 'a1' },
      ]);
    });

    it('are the same in groups and joins', async () => {
      const key = { objectId: '$objectId', createdAt: '$createdAt' };
      expect(
        await aggregate(className, first, { $group: { _id: key, updatedAt: { $max: '$updatedAt' } } }),
      ).toEqual([{ _id: { objectId: 'b1', createdAt: MADE }, updatedAt: MADE }]);
      const join = { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'who' };
      expect(
        await aggregate(
          className,
          first,
          { $lookup: join },
          { $project: { objectId: 1, 'who.objectId': 1, 'who.createdAt': 1 } },
        ),
      ).toEqual([{ objectId: 'b1', who: [{ objectId: 'a1', createdAt: MADE }] }]);
    });

    it('are the same in an export', async () => {
      const pipeline = [{ $sort: { title: 1 } }, { $project: { objectId: 1, createdAt: 1, author: 1 } }];
      const answer = await callTool(services.get(route) as Service, 'export_data', {
        class_name: className,
        pipeline,
        format: 'csv',
      });
      expect(answer.data['output']).toBe(`objectId,author,createdAt\nb1,a1,${MADE}\nb2,"",${MADE}\n`);
    });
  });

  it('carry each of two names that a projection wrote for one column', async () => {
    const projection = { _id: 1, objectId: 1, createdAt: 1, _created_at: 1 };
    expect(await aggregate('Book', first, { $project: projection })).toEqual([
      { _id: 'b1', objectId: 'b1', createdAt: MADE, _created_at: MADE },
    ]);
  });

  it('carry an alias that the projection wrote', async () => {
    expect(await aggregate('Listed', first, { $project: { objectId: 1, cost: 1 } })).toEqual([
      { objectId: 'b1', cost: 3 },
    ]);
  });
});
