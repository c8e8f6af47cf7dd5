import fc from 'fast-check';
import { Binary, Decimal128, type Document, Double, Long, MongoClient, UUID } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

/** JSON has the digits of larger doubles as of whole numbers: such are refused, with what to write instead. */
const isSentBackWhole = (value: number): boolean =>
  Math.abs(value) <= Number.MAX_SAFE_INTEGER || !/^-?\d+$/.test(JSON.stringify(value));

/** Of each column, a stored name that is no identifier, its type for the policy, and any value that it may hold. */
const COLUMNS = {
  straße: [
    'Number',
    fc
      .double()
      .filter(isSentBackWhole)
      .map((value) => new Double(value)),
  ],
  'units sold': [
    'Number',
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
  ],
  'net-price': [
    'Number',
    fc.oneof(
      fc
        .tuple(fc.bigInt({ min: -(10n ** 33n), max: 10n ** 33n }), fc.integer({ min: -40, max: 40 }))
        .map(([digits, exponent]) => Decimal128.fromString(`${digits}E${exponent}`)),
      fc.constantFrom('NaN', 'Infinity', '-Infinity').map((text) => Decimal128.fromString(text)),
    ),
  ],
  время: ['Date', fc.integer({ min: -8.64e15, max: 8.64e15 }).map((time) => new Date(time))],
  'raw (bytes)': ['Bytes', fc.uint8Array({ maxLength: 200 }).map((bytes) => new Binary(bytes))],
  識別子: [null, fc.uuid({ version: 4 }).map((text) => new UUID(text))],
  "writer's note": ['String', fc.string({ unit: 'grapheme', maxLength: 40 })],
  'in use?': ['Boolean', fc.boolean()],
} as const satisfies Record<string, readonly [string | null, fc.Arbitrary<unknown>]>;
const NAMES = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];
const ROWS = 25;

const ids = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }).filter((id) => !id.includes('\0'));
const columnValues = Object.fromEntries(NAMES.map((name) => [name, COLUMNS[name][1]])) as Record<
  string,
  fc.Arbitrary<unknown>
>;
const rows: readonly Document[] = fc.sample(
  fc.uniqueArray(
    fc.tuple(ids, fc.record(columnValues)).map(([id, values]) => ({ _id: id, ...values })),
    { minLength: ROWS, maxLength: ROWS, selector: ({ _id }) => _id },
  ),
  1,
)[0] as readonly Document[];

let database: Database;
let documents: MongoClient;
let service: Service;
beforeAll(async () => {
  database = await startDatabase({ schemas: [] });
  documents = new MongoClient(database.uriOf('shown'));
  for (const name of ['declared', 'sampled'])
    await documents
      .db()
      .collection(name)
      .insertMany(rows as Document[]);
  const typed = NAMES.filter((name) => COLUMNS[name][0] !== null);
  const properties = Object.fromEntries(typed.map((name) => [name, { type: COLUMNS[name][0] }]));
  service = await startService({
    config: {
      database: { uri: database.uriOf('shown'), storage: 'plain' },
      agents: { all: { permissions: 'readonly', rateLimit: 1_000_000 } },
      auth: [{ apiKey: 'all', agent: 'all' }],
      policy: {
        classes: {
          Declared: { collection: 'declared', id: 'string', timestamps: null, properties, fields: NAMES },
          Sampled: { collection: 'sampled', id: 'string', timestamps: null, fields: NAMES },
          Aliased: {
            collection: 'sampled',
            id: 'string',
            timestamps: null,
            properties: { price: { type: 'Number', field: 'net-price' } },
            fields: ['price'],
          },
        },
      },
    },
  });
});
afterAll(async () => {
  await service.stop();
  await documents.close();
  await database.stop();
});

type Row = Record<string, unknown>;
async function read(tool: string, className: string, args: object = {}): Promise<Row> {
  const answer = await callTool(
    service,
    tool,
    { class_name: className, ...args },
    { 'X-MCP-API-Key': 'all' },
  );
  expect([answer.isError, answer.rpcError, JSON.stringify(args), answer.text.slice(0, 300)]).toEqual([
    false,
    undefined,
    JSON.stringify(args),
    expect.any(String),
  ]);
  return answer.data;
}
const found = async (className: string, where: object) =>
  ((await read('query_class', className, { where }))['results'] as Row[]).map(({ objectId }) => objectId);

describe.each(['Declared', 'Sampled'])('a value that an answer shows (%s columns)', (className) => {
  it('finds its row, sent back in where', async () => {
    const shown = (await read('query_class', className))['results'] as Row[];
    expect(shown.map(({ objectId }) => objectId)).toEqual(rows.map(({ _id }) => _id));
    for (const row of shown)
      for (const [name, value] of Object.entries(row)) {
        expect(await found(className, { [name]: value })).toContain(row['objectId']);
        expect(await found(className, { [name]: { $in: [value] } })).toContain(row['objectId']);
      }
  });

  it.each(NAMES)(
    'can be chosen, sorted, grouped, listed and exported by the stored name %s',
    async (name) => {
      const chosen = (await read('query_class', className, { keys: [name], order: `-${name}` }))[
        'results'
      ] as Row[];
      expect(chosen.every((row) => Object.keys(row).join() === `objectId,${name}`)).toBe(true);
      const groups = (await read('group_by', className, { field: name, limit: 1000 }))['groups'] as Row[];
      expect(groups.reduce((sum, { value }) => sum + Number(value), 0)).toBe(ROWS);
      for (const { key, value } of groups)
        expect((await found(className, { [name]: key })).length).toBe(value);
      const { values } = await read('distinct', className, { field: name });
      for (const value of values as unknown[])
        expect(await found(className, { [name]: value })).not.toEqual([]);
      expect(await read('export_data', className, { columns: [name], format: 'csv' })).toMatchObject({
        headers: [name],
        row_count: ROWS,
      });
      const { fields } = await read('get_schema', className);
      expect((fields as Row[]).map((field) => field['name'])).toContain(name);
      const piped = await read('aggregate', className, {
        pipeline: [{ $match: { [name]: { $ne: null } } }, { $group: { _id: `$${name}` } }, { $count: 'n' }],
      });
      expect(piped['results']).toEqual([{ n: groups.length }]);
    },
  );
});

describe('an alias', () => {
  it('names a column whose stored name is no identifier', async () => {
    const shown = (await read('query_class', 'Aliased', { order: 'price' }))['results'] as Row[];
    for (const { objectId, price } of shown) expect(await found('Aliased', { price })).toContain(objectId);
    expect((await read('group_by', 'Aliased', { field: 'price' }))['group_count']).toBeGreaterThan(0);
  });
});
