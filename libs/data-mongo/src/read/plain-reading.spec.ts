import type { PlainColumn } from '#policy';
import fc from 'fast-check';
import { Decimal128, Long, ObjectId, UUID } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FindQuery } from '#data';
import { PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import type { PlainClassDeclaration } from '../schema/storage-declarations.js';
import { TestDatabase } from '../test-database.contract.js';

const TIMESTAMPS = { createdAt: 'createdAt', updatedAt: 'updatedAt' };

const declared = (
  className: string,
  collection: string,
  properties: Readonly<Record<string, PlainColumn>> = {},
  more: Partial<PlainClassDeclaration> = {},
): PlainClassDeclaration => ({
  className,
  collection,
  id: null,
  timestamps: TIMESTAMPS,
  properties: new Map(Object.entries(properties)),
  ...more,
});

const ADA = '65a000000000000000000001';
const BOB = '65a000000000000000000002';
const FIRST = '65b000000000000000000001';
const SECOND = '65b000000000000000000002';
const TOKEN = '0f8fad5b-d9cb-469f-a165-70867728950e';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const id = (hex: string) => ObjectId.createFromHexString(hex);

const SHOP = [
  declared('Order', 'orders', {
    customer: { type: 'Pointer', targetClass: 'Customer', field: 'customer_id' },
    product: { targetClass: 'Article' },
    helpers: { type: 'Array', targetClass: 'Customer' },
    total: { type: 'Number' },
    lines: {
      type: 'Array',
      of: new Map<string, PlainColumn>([
        ['sku', { type: 'String' }],
        ['price', { type: 'Number' }],
        ['product', { type: 'Pointer', targetClass: 'Article' }],
      ]),
    },
    session: { type: 'Pointer', targetClass: 'Visit' },
    author: { type: 'Pointer', targetClass: 'Writer' },
    note: { type: 'String', field: 'internal_note' },
  }),
  declared(
    'Customer',
    'customers',
    { boss: { type: 'Pointer', targetClass: 'Customer', field: 'boss_id' } },
    { timestamps: { createdAt: 'born', updatedAt: 'changed' } },
  ),
  declared('Article', 'products', {}, { timestamps: null }),
  declared('Visit', 'visits', {}, { timestamps: null }),
  declared(
    'Paid',
    'paid_orders',
    { customer: { type: 'Pointer', targetClass: 'Customer', field: 'customer_id' } },
    { timestamps: null },
  ),
];

describe('rows of collections that Parse did not write', PATIENT, () => {
  let database: TestDatabase;
  let store: ReturnType<TestDatabase['openDeclared']>;
  beforeAll(async () => {
    database = await TestDatabase.start();
    store = database.openDeclared({ parse: new Set(['Writer', 'Letter']), plain: SHOP });
    const { db } = store.connection;
    await db.collection('customers').insertMany([
      { _id: id(ADA), name: 'Ada', born: new Date('2020-01-01'), created: 'no date', __v: 3 },
      { _id: id(BOB), name: 'Bob', boss_id: id(ADA), __v: 0, createdAt: 'shadow' },
    ]);
    await db
      .collection<{ _id: number | Long }>('products')
      .insertMany([
        { _id: 7, name: 'Cup', stock: Long.fromString('9007199254740993') } as never,
        { _id: Long.fromString('9007199254740995'), name: 'Pan', stock: Long.fromNumber(2) } as never,
      ]);
    await db.collection<{ _id: UUID }>('visits').insertMany([{ _id: new UUID(TOKEN), page: '/' } as never]);
    await db.collection('orders').insertMany([
      {
        _id: id(FIRST),
        customer_id: id(ADA),
        product: 7,
        helpers: [id(BOB), id(ADA)],
        total: Decimal128.fromString('12.50'),
        lines: [
          { sku: 'a', price: Decimal128.fromString('0.1'), product: 7, _id: id(BOB) },
          { sku: 'b', price: Decimal128.fromString('3'), product: Long.fromString('9007199254740995') },
        ],
        session: new UUID(TOKEN),
        author: 'w1',
        place: { type: 'Point', coordinates: [16, 48] },
        mixed: 'text',
        internal_note: 'hidden name',
        note: 'shadow',
      },
      {
        _id: id(SECOND),
        customer_id: id(BOB),
        total: Decimal128.fromString('99999999999999999999.01'),
        lines: [{ sku: 'a', price: Decimal128.fromString('7') }],
        mixed: 5,
      },
    ]);
    await db.createCollection('paid_orders', { viewOn: 'orders', pipeline: [{ $match: { product: 7 } }] });
    await db
      .collection<{ _id: string }>('_SCHEMA')
      .insertMany([
        { _id: 'Writer', objectId: 'string', name: 'string', order: '*Order' } as never,
        { _id: 'Letter', objectId: 'string', writer: '*Writer' } as never,
        { _id: 'Secret', objectId: 'string', name: 'string' } as never,
      ]);
    await db
      .collection<{ _id: string }>('Writer')
      .insertMany([
        { _id: 'w1', name: 'Eve', _p_order: `Order$${FIRST}`, _created_at: new Date(0) } as never,
      ]);
    await db.collection<{ _id: string }>('Secret').insertMany([{ _id: 's', name: 'secret' } as never]);
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  /** Documents that another program writes after the sample of their collection was read. */
  async function unsampled<T>(work: () => Promise<T>): Promise<T> {
    await store.catalogue.snapshot();
    const later = { _later: 'unsampled', objectId: 'unsampled', ACL: { '*': 'unsampled' } };
    const { db } = store.connection;
    for (const name of ['orders', 'customers']) await db.collection(name).updateMany({}, { $set: later });
    try {
      return await work();
    } finally {
      const names = Object.fromEntries(Object.keys(later).map((column) => [column, 1 as const]));
      for (const name of ['orders', 'customers']) await db.collection(name).updateMany({}, { $unset: names });
    }
  }

  const find = (query: Partial<FindQuery>) =>
    store.reader.find({ className: 'Order', where: {}, limit: 100, ...query }, unhurried());
  const ids = async (where: Record<string, unknown>, className = 'Order') =>
    (await find({ className, where, order: [{ field: 'objectId', descending: false }] })).map(
      (row) => row['objectId'],
    );
  const aggregate = async (className: string, ...pipeline: Record<string, unknown>[]) =>
    (await store.reader.aggregate({ className, pipeline }, unhurried())).rows;

  it('have one form of their ids in a pipeline, whatever name it wrote for them', async () => {
    const ids = await aggregate('Article', { $sort: { _id: 1 } }, { $project: { _id: 1 } });
    expect(ids).toEqual([{ _id: '7' }, { _id: '9007199254740995' }]);
    const written = await aggregate('Article', { $sort: { _id: 1 } }, { $project: { objectId: 1 } });
    expect(written).toEqual(ids.map((row) => ({ objectId: row['_id'] })));
  });

  it('exist for the declared classes alone', async () => {
    const names = (await store.catalogue.snapshot()).classNames();
    expect(names).toEqual(['Article', 'Customer', 'Letter', 'Order', 'Paid', 'Visit', 'Writer']);
    expect(await store.catalogue.problems()).toEqual([]);
  });

  it('show references as pointers, exact numbers as text, and no stored name', async () => {
    const [row] = await find({ where: { objectId: FIRST } });
    expect(row).toEqual({
      objectId: FIRST,
      customer: pointer('Customer', ADA),
      product: pointer('Article', '7'),
      helpers: [pointer('Customer', BOB), pointer('Customer', ADA)],
      total: '12.50',
      lines: [
        { sku: 'a', price: '0.1', product: pointer('Article', '7'), _id: BOB },
        { sku: 'b', price: '3', product: pointer('Article', '9007199254740995') },
      ],
      session: pointer('Visit', TOKEN),
      author: pointer('Writer', 'w1'),
      place: { __type: 'GeoPoint', latitude: 48, longitude: 16 },
      mixed: 'text',
      note: 'hidden name',
    });
    const customers = await find({ className: 'Customer', order: [{ field: 'name', descending: false }] });
    expect(customers).toEqual([
      { objectId: ADA, name: 'Ada', createdAt: '2020-01-01T00:00:00.000Z', created: 'no date' },
      { objectId: BOB, name: 'Bob', boss: pointer('Customer', ADA) },
    ]);
  });

  const found: [string, string, Record<string, unknown>, string[]][] = [
    ['an ObjectId', 'Order', { objectId: { $in: [SECOND, 'nonsense'] } }, [SECOND]],
    ['an ObjectId in other letters', 'Order', { objectId: SECOND.toUpperCase() }, []],
    ['a number', 'Article', { objectId: '7' }, ['7']],
    ['a number with a zero before it', 'Article', { objectId: '07' }, []],
    ['a 64-bit number', 'Article', { objectId: '9007199254740995' }, ['9007199254740995']],
    ['a UUID', 'Visit', { objectId: TOKEN }, [TOKEN]],
    ['a reference', 'Order', { customer: pointer('Customer', BOB) }, [SECOND]],
    ['a reference by its bare id', 'Order', { customer: BOB }, [SECOND]],
    ['a reference to another class with the same id', 'Order', { customer: pointer('Visit', BOB) }, []],
    ['a reference to a number', 'Order', { product: pointer('Article', '7') }, [FIRST]],
    ['a reference to a UUID', 'Order', { session: { $in: [pointer('Visit', TOKEN)] } }, [FIRST]],
    ['a reference to a row of Parse', 'Order', { author: pointer('Writer', 'w1') }, [FIRST]],
    ['a reference in a list', 'Order', { helpers: pointer('Customer', BOB) }, [FIRST]],
    [
      'a reference in documents of a list',
      'Order',
      { 'lines.product': pointer('Article', '9007199254740995') },
      [FIRST],
    ],
    ['a decimal as text', 'Order', { total: '12.5' }, [FIRST]],
    ['a decimal as a number', 'Order', { total: 12.5 }, [FIRST]],
    ['a decimal beyond numbers', 'Order', { total: { $gte: '99999999999999999999.01' } }, [SECOND]],
    ['a decimal inside documents', 'Order', { 'lines.price': 0.1 }, [FIRST]],
    ['a 64-bit number as text', 'Article', { stock: '9007199254740993' }, ['7']],
    ['a document of a list', 'Order', { lines: { $elemMatch: { sku: 'a', price: { $gt: '1' } } } }, [SECOND]],
    ['a value of a column with several types', 'Order', { mixed: 5 }, [SECOND]],
    [
      'a date under its stored name',
      'Customer',
      { createdAt: { $lt: { __type: 'Date', iso: '2021-01-01T00:00:00.000Z' } } },
      [ADA],
    ],
  ];
  it.each(found)('are found by %s', async (_title, className, where, expected) => {
    expect(await ids(where, className)).toEqual(expected);
    expect(await store.reader.count({ className, where }, unhurried())).toBe(expected.length);
    const matched = await aggregate(className, { $match: where });
    expect(matched.map((row) => String(row['_id'])).toSorted()).toEqual(expected);
  });

  it.each(['internal_note', 'customer_id', '__v', '_customer'])(
    'are not reached by the stored name %s',
    async (name) => {
      for (const className of ['Order', 'Paid']) {
        if (className === 'Paid' && name === 'internal_note') continue;
        expect(await storeErrorCode(find({ className, where: { [name]: { $exists: true } } }))).toBe(
          'invalid_query',
        );
        expect(await storeErrorCode(find({ className, keys: [name] }))).toBe('invalid_query');
        expect(await storeErrorCode(find({ className, order: [{ field: name, descending: true }] }))).toBe(
          'invalid_query',
        );
      }
      const rows = await aggregate('Order', {
        $project: { out: `$${name}`, all: { $objectToArray: '$$ROOT' } },
      });
      expect(rows.map((row) => row['out'])).not.toContain('hidden name');
      expect(JSON.stringify(rows)).not.toMatch(/internal_note|customer_id|__v|shadow/);
    },
  );

  it('never show a stored name, or the value that a field hides, whatever the pipeline', async () => {
    const name = fc.constantFrom(
      'note',
      'internal_note',
      'customer',
      'customer_id',
      '__v',
      'createdAt',
      'born',
      '_later',
      'ACL',
      'x',
    );
    /** Names that a pipeline gives to its outputs. */
    const output = fc.constantFrom('note', 'customer', 'createdAt', 'x');
    const reference = fc.oneof(
      name.map((field) => `$${field}`),
      name.map((field) => `$$ROOT.${field}`),
      name.map((field) => `$x.${field}`),
      fc.constant('$$ROOT'),
      name.map((field) => ({ $getField: field })),
      name.map((field) => ({ $getField: { field, input: '$$ROOT' } })),
      fc.constant({ $objectToArray: '$$ROOT' }),
      name.map((field) => ({ $map: { input: '$x', in: `$$this.${field}` } })),
      output.map((field) => ({ $setField: { field, input: '$$ROOT', value: 1 } })),
    );
    const stage = fc.oneof(
      reference.map((value) => ({ $addFields: { x: value } })),
      reference.map((value) => ({ $project: { x: value } })),
      name.map((field) => ({ $project: { [field]: 0 } })),
      name.map((field) => ({ $unset: field })),
      name.map((field) => ({ $sort: { [field]: 1 } })),
      reference.map((value) => ({ $project: { note: 1, x: value } })),
      reference.map((value) => ({ $bucketAuto: { groupBy: value, buckets: 2 } })),
      reference.map((value) => ({ $sortByCount: value })),
      reference.map((value) => ({ $group: { _id: value, x: { $push: '$$ROOT' } } })),
      fc.tuple(reference, name).map(([value, field]) => ({ $project: { [field]: 1, _id: value } })),
      fc.tuple(name, name).map(([field, id]) => ({
        $group: { _id: { note: `$${id}`, x: `$x.${field}` }, x: { $push: { x: `$${field}` } } },
      })),
      fc.tuple(reference, name).map(([value, field]) => ({
        $group: { _id: `$${field}`, x: { $addToSet: value } },
      })),
      reference.map((value) => ({ $replaceWith: { x: value } })),
      fc.constant({ $unwind: '$x' }),
      fc.constantFrom('Order', 'Customer').map((coll) => ({ $unionWith: coll })),
      output.map((field) => ({
        $lookup: { from: 'Customer', localField: 'customer', foreignField: '_id', as: field },
      })),
      fc.constant({ $lookup: { from: 'Order', pipeline: [], as: 'x' } }),
      fc.tuple(fc.constantFrom('Order', 'Customer'), fc.option(output)).map(([from, depthField]) => ({
        $graphLookup: {
          from,
          startWith: from === 'Order' ? '$_id' : '$customer',
          connectFromField: from === 'Order' ? 'customer' : 'boss',
          connectToField: '_id',
          as: 'x',
          ...(depthField !== null && { depthField }),
        },
      })),
      fc.tuple(reference).map(([value]) => ({ $facet: { x: [{ $group: { _id: value } }] } })),
    );
    let answered = 0;
    const property = fc.asyncProperty(
      fc.constantFrom('Order', 'Customer'),
      fc.array(stage, { minLength: 1, maxLength: 4 }),
      // The columns that a governed pipeline removes first.
      fc.constantFrom([], [{ $unset: ['_rperm', '_wperm'] }]),
      async (className, pipeline, removed) => {
        const rows = await aggregate(className, ...removed, ...pipeline).catch(() => null);
        if (rows === null) return;
        answered += rows.length;
        expect(JSON.stringify(rows)).not.toMatch(
          /shadow|internal_note|customer_id|__v|born|boss_id|unsampled/,
        );
      },
    );
    await unsampled(() => fc.assert(property, { numRuns: 200 }));
    expect(answered).toBeGreaterThan(100);
  });

  it('give the depth of a graph search its name, and show no field or stored column of that name', async () => {
    for (const depthField of ['note', 'internal_note', 'customer', '_id', 'x', 'total']) {
      const graph = { from: 'Order', startWith: '$_id', connectFromField: '_id', connectToField: '_id' };
      const [row] = await aggregate(
        'Order',
        { $match: { objectId: FIRST } },
        { $graphLookup: { ...graph, as: 'found', depthField } },
        { $project: { found: 1 } },
      );
      const [found] = (row?.['found'] ?? []) as Record<string, unknown>[];
      expect(Number(found?.[depthField])).toBe(0);
      if (depthField.endsWith('note')) expect(JSON.stringify(row)).not.toContain('shadow');
      if (depthField === 'note') expect(JSON.stringify(row)).not.toContain('hidden name');
    }
  });

  it('have the names of fields in every stage', async () => {
    const [row] = await aggregate(
      'Order',
      { $match: { note: 'hidden name' } },
      {
        $group: {
          _id: '$customer',
          rows: { $push: '$$ROOT' },
          notes: { $addToSet: '$note' },
          sum: { $sum: '$total' },
          n: { $sum: 1 },
        },
      },
      { $match: { _id: pointer('Customer', ADA) } },
    );
    expect(row).toMatchObject({ _id: `Customer$${ADA}`, notes: ['hidden name'], sum: '12.50', n: 1 });
    expect(row?.['rows']).toMatchObject([
      { _id: FIRST, customer: `Customer$${ADA}`, total: '12.50', note: 'hidden name' },
    ]);
    const lines = await aggregate(
      'Order',
      { $unwind: '$lines' },
      { $group: { _id: '$lines.sku', price: { $max: '$lines.price' } } },
      { $sort: { _id: 1 } },
    );
    expect(lines).toEqual([
      { _id: 'a', price: '7' },
      { _id: 'b', price: '3' },
    ]);
  });

  it('compare constants in expressions in the form of the column', async () => {
    const matching = async (condition: unknown) =>
      (await aggregate('Order', { $match: { $expr: condition } })).map((row) => row['_id']);
    expect(await matching({ $eq: ['$_id', FIRST] })).toEqual([FIRST]);
    expect(await matching({ $eq: [pointer('Customer', BOB), '$customer'] })).toEqual([SECOND]);
    expect(await matching({ $in: ['$customer', [ADA, 'nobody']] })).toEqual([FIRST]);
  });

  const include = (field: string, targetClass: string, where = {}) => ({
    field,
    targetClass,
    where,
    include: [],
  });

  it('include the rows that they refer to, of both storage forms', async () => {
    const [row] = await find({
      where: { objectId: FIRST },
      keys: ['total'],
      include: [
        include('customer', 'Customer'),
        include('product', 'Article'),
        include('session', 'Visit'),
        include('author', 'Writer'),
        include('helpers', 'Customer', { objectId: { $ne: ADA } }),
      ],
    });
    expect(row).toMatchObject({
      total: '12.50',
      customer: { __type: 'Object', className: 'Customer', objectId: ADA, name: 'Ada' },
      product: { objectId: '7', name: 'Cup', stock: '9007199254740993' },
      session: { objectId: TOKEN, page: '/' },
      author: { objectId: 'w1', name: 'Eve', order: pointer('Order', FIRST) },
      helpers: [{ objectId: BOB, boss: pointer('Customer', ADA) }, pointer('Customer', ADA)],
    });
    const [writer] = await find({ className: 'Writer', include: [include('order', 'Order')] });
    expect(writer?.['order']).toMatchObject({ objectId: FIRST, total: '12.50' });
  });

  it('join rows of both storage forms, both ways', async () => {
    const joinChunks = (className: string, from: string, localField: string, foreignField: string) =>
      aggregate(
        className,
        { $lookup: { from, localField, foreignField, as: 'joined' } },
        { $match: { 'joined.0': { $exists: true } } },
        { $project: { found: { $map: { input: '$joined', in: { $toString: '$$this._id' } } } } },
        { $sort: { _id: 1 } },
      );
    expect(await joinChunks('Order', 'Customer', 'customer', 'objectId')).toMatchObject([
      { found: [ADA] },
      { found: [BOB] },
    ]);
    expect(await joinChunks('Customer', 'Order', '_id', 'customer')).toMatchObject([
      { found: [FIRST] },
      { found: [SECOND] },
    ]);
    expect(await joinChunks('Order', 'Writer', 'author', 'objectId')).toEqual([
      { _id: FIRST, found: ['w1'] },
    ]);
    expect(await joinChunks('Writer', 'Order', 'objectId', 'author')).toEqual([
      { _id: 'w1', found: [FIRST] },
    ]);
    expect(await joinChunks('Writer', 'Order', 'order', 'objectId')).toEqual([{ _id: 'w1', found: [FIRST] }]);
    expect(await joinChunks('Order', 'Writer', 'objectId', 'order')).toEqual([{ _id: FIRST, found: ['w1'] }]);
    expect(await joinChunks('Order', 'Article', 'product', 'objectId')).toEqual([
      { _id: FIRST, found: ['7'] },
    ]);
    expect(await joinChunks('Order', 'Customer', 'helpers', 'objectId')).toMatchObject([
      { found: [ADA, BOB] },
    ]);
    const above = await aggregate(
      'Customer',
      {
        $graphLookup: {
          from: 'Customer',
          startWith: '$boss',
          connectFromField: 'boss',
          connectToField: 'objectId',
          as: 'above',
        },
      },
      { $match: { name: 'Bob' } },
    );
    expect(above).toMatchObject([
      { above: [{ _id: ADA, name: 'Ada', createdAt: '2020-01-01T00:00:00.000Z' }] },
    ]);
    expect(JSON.stringify(above)).not.toMatch(/born|boss_id|__v/);
  });

  it('are read through a view', async () => {
    expect(await find({ className: 'Paid', keys: ['customer'] })).toEqual([
      { objectId: FIRST, customer: pointer('Customer', ADA) },
    ]);
    const schema = (await store.catalogue.snapshot()).get('Paid');
    expect(schema && (await store.catalogue.listIndexes(schema))).toEqual([]);
  });

  it('are never those of another collection', async () => {
    for (const className of ['Secret', 'orders', 'customers', '_SCHEMA', 'system.views', '_User']) {
      expect(await storeErrorCode(find({ className }))).toBe('invalid_query');
      for (const stage of [
        { $lookup: { from: className, as: 'x', pipeline: [] } },
        { $unionWith: className },
        { $unionWith: { coll: className, pipeline: [] } },
        {
          $graphLookup: {
            from: className,
            startWith: '$_id',
            connectFromField: '_id',
            connectToField: '_id',
            as: 'x',
          },
        },
        { $facet: { x: [{ $lookup: { from: className, as: 'x', pipeline: [] } }] } },
      ])
        expect(await storeErrorCode(aggregate('Order', stage))).toBe('invalid_query');
    }
  });

  it('have no rights of their own: a constraint on rights is refused', async () => {
    const where = { $readableBy: { principals: ['*'] } };
    expect(await storeErrorCode(find({ where }))).toBe('unsupported');
    expect(await storeErrorCode(find({ where: { $or: [where] } }))).toBe('unsupported');
    expect(await storeErrorCode(aggregate('Order', { $match: where }))).toBe('unsupported');
  });
});
