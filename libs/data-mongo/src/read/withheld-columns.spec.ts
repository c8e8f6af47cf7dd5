import { Decimal128, type Document, Long, ObjectId, UUID } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, McpRequest, Refused } from '#core';
import { CachedPrincipalDirectory, GovernedRecordsSource, PrincipalResolver } from '#data';
import { PATIENT } from '#data/contracts';
import { AgentScopes, type ClassConfig, compilePolicy, Policies } from '#policy';
import { MongoPrincipalDirectory } from '../identity/mongo-principal-directory.js';
import { TestDatabase } from '../test-database.contract.js';

class NotedRequest extends McpRequest {
  readonly notes: string[] = [];

  override get note() {
    return (text: string) => void this.notes.push(text);
  }
}

/** What the rows that are withheld hold in each of two worlds, beside what both have. */
const WITHHELD: readonly Document[] = [
  { merger: 5, due: new Date(5), address: { plan: 5 }, kept: { a: 1 } },
  { merger: 'x', offer: ['y'] },
];
const VISIBLE: readonly Document[] = [
  { shop: 'acme', name: 'a', rank: 3, address: { city: 'C' } },
  { shop: 'acme', name: 'b', rank: 4, due: '2024-01-01' },
];

const NOTE: ClassConfig = { storage: 'plain', collection: 'notes', id: 'number', timestamps: null };

/** Rules that limit the rows of one class. */
const RULES: Readonly<Record<string, ClassConfig>> = {
  tenantScope: { tenantScope: { field: 'shop' } },
  filters: { filters: { shop: { $ne: 'other' } } },
};

const CONDITIONS: readonly Record<string, unknown>[] = [
  { merger: 'x' },
  { merger: 5 },
  { merger: '2024-01-01' },
  { due: 'x' },
  { due: { $gte: '2024-01-01' } },
  { 'address.plan': 'x' },
  { offer: 'y' },
  { kept: { a: 2 } },
];

type Store = ReturnType<TestDatabase['openDeclared']>;
type Records = ReturnType<GovernedRecordsSource['for']>;
type Ask = (records: Records) => Promise<unknown>;

const openNotes = (database: TestDatabase): Store =>
  database.openDeclared({
    parse: new Set(),
    plain: [
      { className: 'Note', collection: 'notes', id: 'number', timestamps: null, properties: new Map() },
    ],
  });

async function fill({ connection }: Store, rows: readonly Document[]): Promise<void> {
  const numbered = rows.map((row, _id) => ({ _id, ...row }));
  await connection.db.collection<{ _id: number }>('notes').insertMany(numbered);
}

async function answer(store: Store, rules: ClassConfig, ask: Ask) {
  const records = new GovernedRecordsSource(
    new AgentScopes(new Policies(compilePolicy({ classes: { Note: { ...NOTE, ...rules } } }).policy)),
    store.reader,
    store.catalogue,
    new PrincipalResolver(new CachedPrincipalDirectory(new MongoPrincipalDirectory(store.connection))),
  );
  const definition = compileAgentDefinition('asker', {});
  const request = new NotedRequest(new Agent({ definition, principal: 'ada', tenantId: 'acme' }));
  try {
    return [await ask(records.for(request)), request.notes];
  } catch (error) {
    if (error instanceof Refused) return error.refusal.message;
    throw error;
  }
}

describe('columns that only withheld rows have', PATIENT, () => {
  let database: TestDatabase;
  let stores: Store[];
  beforeAll(async () => {
    database = await TestDatabase.start();
    stores = WITHHELD.map(() => openNotes(database));
    for (const [at, store] of stores.entries())
      await fill(store, [...VISIBLE, { shop: 'other', ...WITHHELD[at] }]);
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
    await database.stop();
  });

  const ASKED: readonly Ask[] = [
    async (records) => {
      const { fields, schema } = await records.describe('Note');
      return [fields, [...schema.fields]];
    },
    ...CONDITIONS.flatMap((where) => [
      (records: Records) => records.page('Note', { where, order: 'objectId' }),
      (records: Records) => records.aggregate('Note', [{ $match: where }, { $sort: { _id: 1 } }]),
    ]),
    ...['merger', 'due', 'offer'].map(
      (name) => (records: Records) =>
        records.aggregate('Note', [
          { $match: { $expr: { $eq: [`$${name}`, 'x'] } } },
          { $group: { _id: null, n: { $sum: `$${name}` } } },
        ]),
    ),
  ];

  it.each(Object.keys(RULES))('change no answer where %s limits the rows', async (rule) => {
    const [one, other] = stores as [Store, Store];
    for (const ask of ASKED)
      expect(await answer(one, RULES[rule] ?? {}, ask)).toEqual(await answer(other, RULES[rule] ?? {}, ask));
  });

  it('are listed for an agent that reads every row', async () => {
    const [one] = stores as [Store];
    const described = await answer(one, {}, ASKED[0] as Ask);
    expect(JSON.stringify(described)).toContain('merger');
  });
});

const HEX = '65a000000000000000000001';
const UUID_TEXT = '0a1b2c3d-0000-4000-8000-000000000001';

/** One value of each kind, under two spellings of names. */
const OWN: Document = {
  count: 5,
  price: Decimal128.fromString('9.50'),
  large: Long.fromString('9007199254740993'),
  double: 0.1,
  code: '5',
  ref: ObjectId.createFromHexString(HEX),
  refs: [ObjectId.createFromHexString(HEX)],
  token: new UUID(UUID_TEXT),
  due: new Date('2024-01-01'),
  day: '2024-01-01',
  list: [1, 2],
  part: { count: 5, price: Decimal128.fromString('9.50') },
  lines: [{ count: 5, price: Decimal128.fromString('2.50') }],
  fullText: 'x',
};

/** What the rows of others hold in the same columns. */
const SHAPES: Readonly<Record<string, (at: number) => unknown>> = {
  texts: (at) => `t${at}`,
  numbers: (at) => at,
  decimals: (at) => Decimal128.fromString(`${at}.25`),
  integers: (at) => Long.fromNumber(at),
  dates: (at) => new Date(at),
  'ids of MongoDB': () => new ObjectId(),
  UUIDs: () => new UUID(),
  places: (at) => ({ type: 'Point', coordinates: [at, at] }),
  objects: (at) => ({ count: `t${at}`, price: 'x' }),
  lists: (at) => [`t${at}`],
};

const OPERANDS: readonly unknown[] = [
  '5',
  '9.50',
  '9007199254740993',
  HEX,
  UUID_TEXT,
  { __type: 'Pointer', className: 'Note', objectId: HEX },
  [1, 2],
];

// prettier-ignore
const PATHS = [
  'count', 'price', 'large', 'code', 'ref', 'refs', 'token', 'day', 'list',
  'part', 'part.price', 'lines.count', 'fullText', 'full_text',
];

describe('what withheld rows hold in the columns of other rows', PATIENT, () => {
  const rows = [
    { shop: 'acme', ...OWN },
    { shop: 'acme', count: 6, fullText: 'y' },
  ];
  const others = (shape: (at: number) => unknown): Document[] =>
    Array.from({ length: 5 }, (_, at) => ({
      shop: 'other',
      ...Object.fromEntries(Object.keys(OWN).map((name) => [name, shape(at)])),
      full_text: shape(at),
    }));
  const asked: readonly Ask[] = [
    (records) => records.page('Note', { order: 'objectId' }),
    ...PATHS.flatMap((path): Ask[] => [
      (records) => records.page('Note', { order: path, keys: [path] }),
      (records) => records.aggregate('Note', [{ $sort: { objectId: 1 } }, { $project: { v: `$${path}` } }]),
      (records) => records.aggregate('Note', [{ $group: { _id: `$${path}` } }, { $sort: { _id: 1 } }]),
      ...OPERANDS.flatMap((value): Ask[] => [
        ...[
          { [path]: value },
          { [path]: { $nin: [value, 'q'] } },
          ...(Array.isArray(value) ? [] : [{ [path]: { $gt: value } }]),
        ].map(
          (where): Ask =>
            (records) =>
              records.count('Note', { where }),
        ),
        (records) =>
          records.aggregate('Note', [
            { $match: { [path]: { $not: { $in: [value] } } } },
            { $sort: { objectId: 1 } },
            {
              $project: {
                a: { $eq: [`$${path}`, value] },
                b: { $lt: [`$${path}`, value] },
                c: { $in: [`$${path}`, [value]] },
              },
            },
          ]),
        (records) =>
          records.aggregate('Note', [
            { $match: { $expr: { $ne: [`$${path}`, value] } } },
            {
              $group: {
                _id: null,
                n: {
                  $sum: {
                    $cond: [{ $isArray: `$${path}` }, { $cond: [{ $in: [value, `$${path}`] }, 1, 0] }, 7],
                  },
                },
              },
            },
          ]),
      ]),
    ]),
  ];
  let database: TestDatabase;
  let alone: Store;
  let expected: unknown[];
  const answers = async (store: Store) => {
    const all: unknown[] = [];
    for (let at = 0; at < asked.length; at += 20) {
      const some = asked.slice(at, at + 20).map((ask) => answer(store, RULES['tenantScope'] ?? {}, ask));
      all.push(...(await Promise.all(some)));
    }
    return all;
  };
  beforeAll(async () => {
    database = await TestDatabase.start();
    alone = openNotes(database);
    await fill(alone, rows);
    expected = await answers(alone);
  });
  afterAll(async () => {
    await alone.close();
    await database.stop();
  });

  it.each(Object.keys(SHAPES))('changes no answer: %s', async (name) => {
    const store = openNotes(database);
    await fill(store, [...rows, ...others(SHAPES[name] ?? String)]);
    expect(await answers(store)).toEqual(expected);
    await store.close();
  });

  it('leaves a name of the operator to mean the column that only a sample knows', async () => {
    const count: Ask = (records) => records.count('Note', { applyCanonicalFilter: false });
    const own = { tenantScope: { field: 'shop' } };
    expect(await answer(alone, own, count)).toEqual([2, []]);
    expect(await answer(alone, { ...own, filters: { full_text: { $ne: 'x' } } }, count)).toEqual([1, []]);
    // A default filter is shown to agents, which write it as it is.
    const shown = { ...own, canonicalFilter: { full_text: 'x' } };
    const again: Ask = (records) =>
      records.count('Note', { applyCanonicalFilter: false, where: { full_text: 'x' } });
    expect(await answer(alone, shown, (records) => records.count('Note'))).toEqual([1, []]);
    expect(await answer(alone, shown, again)).toEqual([1, []]);
  });

  it('leaves every value to be found by what a row shows of it', async () => {
    for (const [path, shown] of [
      ['price', '9.50'],
      ['large', '9007199254740993'],
      ['ref', HEX],
      ['token', UUID_TEXT],
      ['code', '5'],
      ['due', '2024-01-01T00:00:00.000Z'],
    ] as const)
      expect([
        path,
        await answer(alone, {}, (records) => records.count('Note', { where: { [path]: shown } })),
      ]).toEqual([path, [1, []]]);
    // No double is so near to an integer that one is taken for the other.
    const where = { large: '9007199254740992' };
    expect(await answer(alone, {}, (records) => records.count('Note', { where }))).toEqual([0, []]);
  });
});
