import { MongoClient } from 'mongodb';
import { beforeAll, describe, expect, it } from 'vitest';
import { startEmbeddings } from '../../support/embeddings-server.js';
import {
  CLEAR,
  CUSTOMERS,
  type CustomersAgent,
  customersConfig,
  SALARIES,
} from '../../fixtures/masked-customers.fixture.js';
import {
  callTool,
  type Database,
  GATES_OPEN,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

let database: Database;
let service: Service;
let embeddings: Awaited<ReturnType<typeof startEmbeddings>>;
beforeAll(async () => {
  [database, embeddings] = await Promise.all([startDatabase(CUSTOMERS), startEmbeddings()]);
  // A unique index that no schema row knows of, as an operator of the database makes one.
  const admin = new MongoClient(database.uri);
  const { databases } = await admin.db().admin().listDatabases();
  const own = databases.find(({ name }) => !['admin', 'config', 'local'].includes(name));
  const databaseName = String(own?.name);
  await admin
    .db(databaseName)
    .collection('Customer')
    .createIndex({ shop: 1, email: 1 }, { unique: true, name: 'one_email_per_shop' });
  await admin.close();
  service = await startService({
    config: { ...customersConfig(embeddings.endpoint), database: { uri: database.uri, name: databaseName } },
    env: GATES_OPEN,
  });
});

const as = (name: CustomersAgent) => ({ 'X-MCP-API-Key': `key-${name}` });
type Row = Record<string, unknown>;

/** Nothing that only exists in clear may stand in any answer to an agent below admin. */
async function call(name: CustomersAgent, tool: string, args: object) {
  const answer = await callTool(service, tool, args, as(name));
  if (name !== 'admin' && name !== 'south') expect(traces(answer.wire)).toEqual([]);
  return answer;
}

/** What stays of a card number at its end is no trace. */
function traces(wire: string): string[] {
  return [CLEAR, ...SALARIES.map(String), 'MADE-UP-SECRET'].filter((trace) => wire.includes(trace));
}

const about = { class_name: 'Customer' };
const rowsOf = (data: Row): Row[] => (data['results'] ?? data['samples']) as Row[];
const PSEUDONYM = /^h_[A-Za-z0-9_-]{22}$/;

/** Every place where a query may name a field. */
const NAMED: readonly (readonly [string, (field: string) => object])[] = [
  ['query_class', (field) => ({ where: { [field]: 'x' } })],
  ['query_class', (field) => ({ where: { [field]: { $exists: false } } })],
  ['query_class', (field) => ({ where: { $or: [{ name: 'x' }, { $nor: [{ [field]: { $gt: '' } }] }] } })],
  ['query_class', (field) => ({ where: { [`${field}.length`]: 1 } })],
  ['query_class', (field) => ({ order: `name,-${field}` })],
  ['query_class', (field) => ({ include: [field] })],
  ['count_objects', (field) => ({ where: { [field]: { $regex: 'CLEAR' } } })],
  ['explain_query', (field) => ({ where: { [field]: 'x' } })],
  ['group_by', (field) => ({ field })],
  ['group_by', (field) => ({ field: 'name', operation: 'max', value_field: field })],
  ['group_by', (field) => ({ field: 'name', where: { [field]: 'x' } })],
  ['group_by_date', (field) => ({ field, interval: 'year' })],
  ['distinct', (field) => ({ field })],
  ['distinct', (field) => ({ field: 'name', where: { [field]: 'x' } })],
  ['export_data', (field) => ({ columns: ['name'], where: { [field]: 'x' } })],
  ['export_data', (field) => ({ columns: ['name'], order: field })],
  ['aggregate', (field) => ({ pipeline: [{ $match: { [field]: 'x' } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $match: { $expr: { $gt: [`$${field}`, ''] } } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $group: { _id: `$${field}` } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $sort: { [field]: 1 } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $project: { x: { $getField: field } } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $project: { x: `$$ROOT.${field}` } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $addFields: { x: { $ifNull: [`$${field}`, 1] } } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $sortByCount: `$${field}` }] })],
  ['aggregate', (field) => ({ pipeline: [{ $bucketAuto: { groupBy: `$${field}`, buckets: 2 } }] })],
  ['aggregate', (field) => ({ pipeline: [{ $facet: { x: [{ $group: { _id: `$${field}` } }] } }] })],
  [
    'aggregate',
    (field) => ({
      pipeline: [{ $lookup: { from: 'Order', localField: field, foreignField: 'title', as: 'x' } }],
    }),
  ],
  ['atlas_text_search', (field) => ({ query: 'clear', fields: [field] })],
  ['atlas_text_search', (field) => ({ query: 'ada', highlight_field: field })],
  ['atlas_text_search', (field) => ({ query: 'ada', filter: { [field]: 'x' } })],
  ['atlas_autocomplete', (field) => ({ query: 'CLE', field })],
];

describe.each([
  ['hashed', 'email', 'masked_field'],
  ['hashed with others', 'phone', 'masked_field'],
  ['masked', 'salary', 'masked_field'],
  ['masked but for its end', 'card', 'masked_field'],
  ['masked in part', 'address', 'masked_field'],
  ['denied by code', 'token', 'masked_field'],
  ['dropped', 'ssn', 'field_denied'],
  ['a masked pointer', 'manager', 'masked_field'],
  ['a masked file', 'scan', 'masked_field'],
])('a field that is %s', (_, field, kind) => {
  it('is named by no query of any tool', async () => {
    const answers = await Promise.all(
      NAMED.map(async ([tool, args]) => {
        const answer = await call('reader', tool, { ...about, ...args(field) });
        return [tool, JSON.stringify(args(field)), answer.code, answer.details?.['kind']];
      }),
    );
    expect(answers).toEqual(
      NAMED.map(([tool, args]) => [tool, JSON.stringify(args(field)), 'access_denied', kind]),
    );
  });

  it('is named in no other class’s question either, nor in its storage form', async () => {
    const inner = { className: 'Customer', where: { [field]: 'x' } };
    const questions: [string, object][] = [
      ['query_class', { class_name: 'Order', where: { buyer: { $inQuery: inner } } }],
      [
        'query_class',
        {
          class_name: 'Order',
          where: { title: { $select: { query: { className: 'Customer' }, key: field } } },
        },
      ],
      [
        'aggregate',
        {
          class_name: 'Order',
          pipeline: [{ $lookup: { from: 'Customer', localField: 'title', foreignField: field, as: 'x' } }],
        },
      ],
      [
        'aggregate',
        {
          class_name: 'Order',
          pipeline: [
            { $lookup: { from: 'Customer', let: {}, pipeline: [{ $match: { [field]: 1 } }], as: 'x' } },
          ],
        },
      ],
      [
        'aggregate',
        {
          class_name: 'Order',
          pipeline: [{ $unionWith: { coll: 'Customer', pipeline: [{ $sort: { [field]: 1 } }] } }],
        },
      ],
    ];
    for (const [tool, args] of questions) {
      const answer = await call('reader', tool, args);
      expect([JSON.stringify(args), answer.code, answer.details?.['kind']]).toEqual([
        JSON.stringify(args),
        'access_denied',
        kind,
      ]);
    }
    const stored = await call('reader', 'aggregate', {
      ...about,
      pipeline: [{ $group: { _id: `$_p_${field}` } }],
    });
    expect(stored.isError || stored.rpcError !== undefined).toBe(true);
  });

  it('is not written by an agent that may not read it', async () => {
    for (const [tool, args] of [
      ['create_object', {}],
      ['update_object', { object_id: 'c1' }],
    ] as const) {
      const answer = await call('writer', tool, { ...about, ...args, fields: { [field]: 'x' } });
      expect([tool, answer.code, answer.details?.['kind']]).toEqual([tool, 'access_denied', kind]);
    }
  });
});

describe('rows', () => {
  const NOBODY = { objectId: 'c4', name: 'Nobody' };
  const isMasked = (row: Row) => {
    expect(row).toMatchObject({ salary: '***', manager: '***', scan: '***' });
    expect([row['email'], row['phone']]).toEqual([
      expect.stringMatching(PSEUDONYM),
      expect.stringMatching(PSEUDONYM),
    ]);
    for (const gone of ['ssn', 'token']) expect(row).not.toHaveProperty(gone);
  };

  it.each<[string, object]>([
    ['query_class', {}],
    ['query_class', { keys: ['name', 'email', 'phone', 'salary', 'manager', 'scan', 'address', 'card'] }],
    ['get_sample_objects', {}],
  ])('of %s %j carry masked forms, those of rows without a value too', async (tool, args) => {
    const { data } = await call('reader', tool, { ...about, ...args });
    const rows = rowsOf(data);
    expect(rows).toHaveLength(4);
    rows.forEach(isMasked);
    expect(rows.find((row) => row['objectId'] === 'c1')).toMatchObject({
      card: '***0001',
      address: { street: '***', town: 'T', flats: [{ floor: 1 }] },
    });
    expect(rows.find((row) => row['objectId'] === 'c4')).toMatchObject({ ...NOBODY, card: '***' });
  });

  it('of get_object, get_objects and included pointers do as well', async () => {
    isMasked((await call('reader', 'get_object', { ...about, object_id: 'c1' })).data['object'] as Row);
    const many = await call('reader', 'get_objects', { ...about, ids: ['c1', 'c4'] });
    Object.values(many.data['objects'] as Record<string, Row>).forEach(isMasked);
    const included = await call('reader', 'query_class', { class_name: 'Order', include: ['buyer'] });
    rowsOf(included.data).forEach((row) => isMasked(row['buyer'] as Row));
    const inside = await call('reader', 'query_class', {
      class_name: 'Order',
      include: ['buyer'],
      keys: ['title', 'buyer.email', 'buyer.ssn', 'buyer.address.street'],
    });
    const [first] = rowsOf(inside.data) as { buyer: Row }[];
    expect(first?.buyer['email']).toMatch(PSEUDONYM);
    expect(first?.buyer).not.toHaveProperty('ssn');
  });

  it('of exports, resources and text formats do as well', async () => {
    const csv = await call('reader', 'export_data', {
      ...about,
      columns: ['name', 'email', 'salary', 'ssn', 'address.street', 'card', 'never'],
      format: 'csv',
      order: 'name',
    });
    const [, first = ''] = String(csv.data['output']).split('\n');
    expect(first).toMatch(/^Ada,h_[\w-]{22},\*\*\*,"",\*\*\*,\*\*\*0001,""$/);
    const table = await call('reader', 'query_class', { ...about, format: 'markdown' });
    expect(table.text).toContain('***');
    for (const kind of ['samples', 'schema', 'count']) {
      const { text } = await rpc(
        service,
        'resources/read',
        { uri: `parse://Customer/${kind}` },
        as('reader'),
      );
      expect([kind, traces(text)]).toEqual([kind, []]);
    }
  });

  it('of pipelines hold no masked column, however they come by the whole row', async () => {
    for (const pipeline of [
      [{ $limit: 9 }],
      [{ $group: { _id: null, all: { $push: '$$ROOT' } } }],
      [{ $project: { all: { $objectToArray: '$$ROOT' } } }],
      [{ $lookup: { from: 'Customer', let: {}, pipeline: [], as: 'all' } }],
      [
        {
          $graphLookup: {
            from: 'Customer',
            startWith: '$name',
            connectFromField: 'name',
            connectToField: 'name',
            as: 'all',
          },
        },
      ],
      [{ $unionWith: 'Customer' }],
      [{ $facet: { all: [{ $limit: 9 }] } }],
      [{ $replaceRoot: { newRoot: { all: '$$ROOT' } } }],
    ]) {
      const { data, wire } = await call('reader', 'aggregate', { ...about, pipeline });
      expect(rowsOf(data).length).toBeGreaterThan(0);
      expect(wire).toContain('Ada');
      for (const column of ['email', 'salary', 'address', 'ssn']) expect(wire).not.toContain(`"${column}`);
    }
  });

  it('of a declared method hold masked forms where they were read, and no masked column where they were made', async () => {
    const method = (name: string, more: object = {}) =>
      call('reader', 'call_method', { ...about, method_name: name, ...more });
    const found = (await method('found')).data['result'] as { rows: Row[] };
    found.rows.forEach(isMasked);
    expect((await method('made')).data['result']).toMatchObject({ objectId: 'c1', name: 'Ada' });
    expect((await method('itself', { object_id: 'c1' })).isError).toBe(false);
  });

  it('of searches by word hold masked forms, and masked text is not searched', async () => {
    const ada = await call('reader', 'atlas_text_search', { ...about, query: 'ada', limit: 10 });
    expect(ada.data['count']).toBe(2);
    (ada.data['results'] as Row[]).forEach(isMasked);
    const hidden = await call('reader', 'atlas_text_search', { ...about, query: `${CLEAR}1@example.org` });
    expect(hidden.data['count']).toBe(0);
  });
});

describe('similarity', () => {
  it('is not compared where the vector stands for masked text, nor said to be', async () => {
    for (const [tool, args] of [
      ['semantic_search', { query: 'tea' }],
      ['find_similar', { object_id: 'c1' }],
    ] as const) {
      const answer = await call('reader', tool, { ...about, ...args });
      expect([tool, answer.code]).toEqual([tool, 'invalid_argument']);
    }
  });
});

describe('facets', () => {
  it('count no masked field', async () => {
    const facets = { class_name: 'Person', query: 'pia', facets: { phones: { path: 'phone' } } };
    const answer = await call('facets', 'atlas_faceted_search', facets);
    expect(answer.details).toMatchObject({ kind: 'masked_field', denied_field: 'phone' });
  });
});

describe('pseudonyms', () => {
  const emails = async (name: CustomersAgent, field = 'email', class_name = 'Customer') =>
    rowsOf((await call(name, 'query_class', { class_name, order: 'objectId' })).data).map(
      (row) => row[field],
    );

  it('show which rows hold the same, for as long as the key lives, and nothing more', async () => {
    const [one, two, three, none] = await emails('reader');
    expect(three).toBe(one);
    expect(new Set([one, two, none]).size).toBe(3);
    expect(await emails('reader')).toEqual([one, two, three, none]);
  });

  it('do not join across tenants or fields, unless they are configured to', async () => {
    const [north, south] = [await emails('writer'), await emails('south')];
    expect(north.filter((name) => south.includes(name))).toEqual([]);
    const [phone] = await emails('reader', 'phone');
    expect(await emails('reader', 'phone', 'Person')).toEqual([phone]);
    expect((await emails('south', 'phone'))[0]).toBe(phone);
  });

  it('are not compared with: one that was seen finds nothing out', async () => {
    const [one] = await emails('reader');
    const answer = await call('reader', 'count_objects', { ...about, where: { email: one } });
    expect(answer.details).toMatchObject({ kind: 'masked_field' });
  });
});

describe('tiers', () => {
  it('lift a mask where the policy says so, and the master key lifts none', async () => {
    const card = async (name: CustomersAgent) =>
      (((await call(name, 'get_object', { ...about, object_id: 'c1' })).data['object'] ?? {}) as Row)['card'];
    expect([await card('reader'), await card('writer'), await card('admin')]).toEqual([
      '***0001',
      '***0001',
      `${CLEAR}-card-0001`,
    ]);
    const asked = await call('admin', 'count_objects', { ...about, where: { card: `${CLEAR}-card-0001` } });
    expect(asked.data['count']).toBe(1);
    const user = async (name: CustomersAgent) =>
      rowsOf((await call(name, 'query_class', { class_name: '_User', order: 'username' })).data)[0]?.[
        'email'
      ];
    expect([await user('reader'), await user('admin')]).toEqual(['***', `${CLEAR}@ada.example`]);
  });

  it('leave class permissions their say: what both withhold is not there at all', async () => {
    const [row = {}] = rowsOf((await call('ada', 'query_class', about)).data);
    expect(row).not.toHaveProperty('scan');
    expect(row).toMatchObject({ salary: '***' });
    const asked = await call('ada', 'query_class', { ...about, where: { scan: null } });
    expect(asked.details).toMatchObject({ kind: 'protected_field_ref' });
    const users = rowsOf((await call('ada', 'query_class', { class_name: '_User', order: 'username' })).data);
    // Its own address is the user's to see, and still masked for the agent.
    expect(users.map((user) => user['email'])).toEqual(['***']);
  });
});

describe('what agents learn of masks', () => {
  it('of a class names masked fields apart, and a dropped one nowhere', async () => {
    const { data, wire } = await call('reader', 'get_schema', about);
    expect(data['masked_fields']).toEqual({
      email: 'hash',
      phone: 'hash, shared as phone, across tenants',
      salary: 'mask',
      card: 'mask, last 4 kept',
      'address.street': 'mask',
      manager: 'mask',
      scan: 'mask',
      token: 'deny',
    });
    const names = (data['fields'] as { name: string }[]).map(({ name }) => name);
    expect(names.sort()).toEqual([
      'ACL',
      'city',
      'createdAt',
      'name',
      'objectId',
      'orgId',
      'shop',
      'updatedAt',
    ]);
    expect(wire).not.toContain('ssn');
    expect(wire).not.toContain('one_email_per_shop');
    const completion = await rpc(
      service,
      'completion/complete',
      {
        ref: { type: 'ref/prompt', name: 'count_by' },
        argument: { name: 'group_by', value: '' },
        context: { arguments: about },
      },
      { ...as('reader'), 'MCP-Protocol-Version': '2025-11-25' },
    );
    expect(completion.text).toContain('city');
    for (const field of ['email', 'ssn', 'token']) expect(completion.text).not.toContain(`"${field}"`);
  });

  it('by a refused name is the same for a dropped field and for one that never was', async () => {
    const answered = async (field: string, args: object) =>
      (await call('reader', 'query_class', { ...about, ...args })).text.replaceAll(field, '<field>');
    const filtered = (field: string) => answered(field, { where: { [field]: 1 } });
    expect(await filtered('ssn')).toBe(await filtered('xyz'));
    const keyed = (field: string) => answered(field, { keys: ['name', field] });
    expect(await keyed('ssn')).toBe(await keyed('xyz'));
  });

  it('by keys is a refusal for a denied field alone', async () => {
    const keyed = await call('reader', 'query_class', { ...about, keys: ['token'] });
    expect(keyed.details).toMatchObject({ kind: 'masked_field', denied_field: 'token' });
    const included = await call('reader', 'query_class', {
      class_name: 'Order',
      include: ['buyer'],
      keys: ['buyer.token'],
    });
    expect(included.details).toMatchObject({ kind: 'masked_field', denied_field: 'token' });
  });
});

describe('writes', () => {
  it('beside a masked field are answered in masked form', async () => {
    const answer = await call('writer', 'update_object', {
      ...about,
      object_id: 'c1',
      fields: { city: 'Basel' },
    });
    expect(answer.isError).toBe(false);
    expect(answer.data['object']).toMatchObject({ city: 'Basel', salary: '***', card: '***0001' });
    expect((answer.data['object'] as Row)['email']).toMatch(PSEUDONYM);
  });

  it('never meet a unique index over a masked field: whether it takes a value would show what it holds', async () => {
    // c3 has the address of c1, so this would collide if the address were known to be the same.
    for (const shop of ['s1', 's2', 'elsewhere']) {
      const moved = await call('writer', 'update_object', { ...about, object_id: 'c3', fields: { shop } });
      expect([shop, moved.code, moved.details?.['kind']]).toEqual([shop, 'access_denied', 'masked_field']);
    }
    const made = await call('writer', 'create_object', { ...about, fields: { name: 'New' } });
    expect(made.details).toMatchObject({ kind: 'masked_field' });
  });
});
