import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Decimal128, Double, MongoClient, ObjectId } from 'mongodb';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  callTool,
  type Database,
  listLogged,
  rpc,
  type Service,
  startAndFail,
  startDatabase,
  startService,
} from '../../support/service.js';
import { runCommand } from '../../support/terminal.js';

const SOON = { timeout: 30_000, interval: 50 };
const SEED = {
  schemas: [
    {
      className: 'Plan',
      fields: { name: { type: 'String' } },
      classLevelPermissions: { find: { '*': true }, get: { '*': true }, count: { '*': true } },
    },
  ],
  objects: { Plan: [{ objectId: 'p1', name: 'gold' }] },
};

/** Tenants whose text must never become a name, and what a database of that name holds. */
const UNUSABLE: Readonly<Record<string, string | number>> = {
  dots: '..',
  dotted: 'acme.globex',
  slash: '../acme',
  dollar: '$acme',
  upper: 'Acme',
  unicode: 'acmé',
  fullwidth: 'ａcme',
  kelvin: '\u212Aelvin',
  blank: ' ',
  space: 'acme ',
  newline: 'acme\n',
  pattern: '{tenant}',
  replacement: '$&',
  long: 'a'.repeat(64),
  whole: 'a'.repeat(62),
  negative: -1.5,
  huge: 1e21,
};

let cluster: Database;
let documents: MongoClient;
let service: Service;
const shared = new ObjectId();

/** A column that one tenant stores as ids and decimals, and another as texts and doubles. */
const WITHHELD_TEAM = '65a000000000000000000001';
const OPEN_TEAM = '65a000000000000000000002';
const NOTES = {
  acme: [WITHHELD_TEAM, OPEN_TEAM].map((team) => ({
    team: ObjectId.createFromHexString(team),
    price: Decimal128.fromString('99.95'),
  })),
  globex: [WITHHELD_TEAM, OPEN_TEAM].map((team) => ({ team, price: new Double(99.95) })),
};

const rows = (tenant: string) => ({
  invoices: [
    {
      _id: shared,
      number: `${tenant}-1`,
      secret: `SECRET-${tenant}`,
      plan: 'p1',
      amount: 1,
      createdAt: new Date(),
    },
    { number: `${tenant}-2`, secret: `SECRET-${tenant}`, amount: 2, createdAt: new Date() },
  ],
  [`of_${tenant}`]: [{ hidden: `SECRET-${tenant}` }],
});

const configuration = (more: object = {}) => ({
  databases: {
    shop: { uri: 'embedded', seed: './seed.json' },
    app: { uri: cluster.uriOf('unused'), storage: 'plain', name: 't_{tenant}' },
    fixed: { uri: cluster.uriOf('t_fixed'), storage: 'plain' },
  },
  subscriptions: { debounce: 0.05 },
  agents: {
    acme: { tenantId: 'acme', permissions: 'admin', rateLimit: 1_000_000 },
    globex: { tenantId: 'globex', permissions: 'admin', rateLimit: 1_000_000 },
    seven: { tenantId: 7, permissions: 'admin' },
    nobody: { permissions: 'admin' },
    ...Object.fromEntries(
      [...Object.entries(UNUSABLE), ['fixed', 'fixed'] as const].map(([name, tenantId]) => [
        `x_${name}`,
        { tenantId, permissions: 'admin' },
      ]),
    ),
  },
  auth: [
    'acme',
    'globex',
    'seven',
    'nobody',
    ...[...Object.keys(UNUSABLE), 'fixed'].map((name) => `x_${name}`),
  ].map((name) => ({ apiKey: name, agent: name })),
  policy: {
    classes: {
      Plan: {},
      Invoice: {
        database: 'app',
        collection: 'invoices',
        properties: {
          plan: { type: 'Pointer', targetClass: 'Plan' },
          number: { type: 'String' },
          secret: { type: 'String' },
        },
      },
      Own: { database: 'app', collection: 'of_acme' },
      Note: {
        database: 'app',
        collection: 'notes',
        properties: { team: { type: 'String' }, price: { type: 'Number' } },
        filters: { team: { $ne: WITHHELD_TEAM } },
      },
      Fixed: { database: 'fixed', collection: 'invoices' },
    },
  },
  ...more,
});

const GATES = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
const as = (agent: string) => ({ 'X-MCP-API-Key': agent });
const ask = (tool: string, args: object, agent: string) => callTool(service, tool, args, as(agent));

beforeAll(async () => {
  cluster = await startDatabase({ schemas: [] });
  documents = new MongoClient(cluster.uriOf('unused'));
  for (const name of [
    't_acme',
    't_globex',
    't_7',
    't_fixed',
    'fixed',
    'parley_audit',
    'parley',
    'admin',
    'local',
    'config',
    't_Acme',
    'acme',
  ])
    for (const [collection, list] of Object.entries(rows(name.replace(/^t_/, ''))))
      await documents
        .db(name)
        .collection(collection)
        .insertMany(list as object[])
        .catch(() => undefined);
  for (const [tenant, notes] of Object.entries(NOTES))
    await documents
      .db(`t_${tenant}`)
      .collection('notes')
      .insertMany(notes as object[]);
  service = await startService({ config: configuration(), seed: SEED, env: GATES });
});
afterAll(async () => {
  await service?.stop();
  await documents?.close();
  await cluster?.stop();
});

describe('a class of which each tenant has its own database', () => {
  it('is read in the database of the tenant of the agent', async () => {
    const acme = await ask('query_class', { class_name: 'Invoice', order: 'number' }, 'acme');
    expect(acme.data['results']).toMatchObject([{ number: 'acme-1' }, { number: 'acme-2' }]);
    const globex = await ask('query_class', { class_name: 'Invoice', order: 'number' }, 'globex');
    expect(globex.data['results']).toMatchObject([{ number: 'globex-1' }, { number: 'globex-2' }]);
    const seven = await ask('query_class', { class_name: 'Invoice', order: 'number' }, 'seven');
    expect(seven.data['results']).toMatchObject([{ number: '7-1' }, { number: '7-2' }]);
  });

  it('is written there, and nowhere else', async () => {
    const made = await ask(
      'create_object',
      { class_name: 'Invoice', fields: { number: 'acme-new' }, idempotency_key: 'the-same-key' },
      'acme',
    );
    expect([made.isError, made.text]).toEqual([false, expect.any(String)]);
    const other = await ask(
      'create_object',
      { class_name: 'Invoice', fields: { number: 'globex-new' }, idempotency_key: 'the-same-key' },
      'globex',
    );
    expect(other.wire).not.toContain('acme');
    await ask(
      'update_object',
      { class_name: 'Invoice', object_id: String(shared), fields: { secret: 'changed' } },
      'acme',
    );
    const { objectId } = made.data['object'] as { objectId: string };
    expect((await ask('get_object', { class_name: 'Invoice', object_id: objectId }, 'globex')).isError).toBe(
      true,
    );
    await ask('delete_object', { class_name: 'Invoice', object_id: objectId }, 'globex');
    const stored = (name: string) => documents.db(name).collection('invoices');
    expect(await stored('t_acme').countDocuments({ number: 'acme-new' })).toBe(1);
    expect(await stored('t_globex').countDocuments({ number: 'globex-new' })).toBe(1);
    expect(await stored('t_globex').findOne({ _id: shared })).toMatchObject({ secret: 'SECRET-globex' });
    await ask(
      'update_object',
      { class_name: 'Invoice', object_id: String(shared), fields: { secret: 'SECRET-acme' } },
      'acme',
    );
    await stored('t_acme').deleteOne({ number: 'acme-new' });
    await stored('t_globex').deleteOne({ number: 'globex-new' });
  });

  it('is filtered and written as each database stores it, whichever tenant calls first', async () => {
    for (const tenant of ['acme', 'globex']) {
      const read = await ask('query_class', { class_name: 'Note' }, tenant);
      expect([tenant, read.data['results']]).toMatchObject([tenant, [{ team: OPEN_TEAM }]]);
      const fields = { team: OPEN_TEAM, price: 1.5 };
      const made = await ask('create_object', { class_name: 'Note', fields }, tenant);
      expect([made.isError, made.text]).toEqual([false, expect.any(String)]);
    }
    const count = (tenant: string, team: string, price: string) =>
      documents
        .db(`t_${tenant}`)
        .collection('notes')
        .countDocuments({ team: { $type: team as 'string' }, price: { $type: price as 'double' } });
    expect([await count('acme', 'objectId', 'decimal'), await count('globex', 'string', 'double')]).toEqual([
      3, 3,
    ]);
  });

  it('refers to classes of all', async () => {
    const found = await ask(
      'query_class',
      { class_name: 'Invoice', where: { number: 'acme-1' }, include: ['plan'] },
      'acme',
    );
    expect(found.data['results']).toMatchObject([{ plan: { name: 'gold' } }]);
  });

  const TEXTS = [
    'query_class',
    'count_objects',
    'get_schema',
    'get_sample_objects',
    'explain_query',
  ] as const;
  it.each([
    ...TEXTS.map((tool) => [tool, { class_name: 'Invoice' }] as const),
    ['get_object', { class_name: 'Invoice', object_id: String(shared) }],
    ['get_objects', { class_name: 'Invoice', ids: [String(shared)] }],
    ['aggregate', { class_name: 'Invoice', pipeline: [{ $group: { _id: '$secret', n: { $sum: 1 } } }] }],
    ['aggregate', { class_name: 'Invoice', pipeline: [{ $unionWith: { coll: 'Own' } }] }],
    [
      'aggregate',
      { class_name: 'Invoice', pipeline: [{ $lookup: { from: 'of_globex', as: 'x', pipeline: [] } }] },
    ],
    [
      'aggregate',
      {
        class_name: 'Invoice',
        pipeline: [{ $lookup: { from: { db: 't_globex', coll: 'invoices' }, as: 'x', pipeline: [] } }],
      },
    ],
    [
      'aggregate',
      { class_name: 'Invoice', pipeline: [{ $unionWith: { db: 't_globex', coll: 'invoices' } }] },
    ],
    ['group_by', { class_name: 'Invoice', field: 'secret' }],
    ['distinct', { class_name: 'Invoice', field: 'secret' }],
    ['export_data', { class_name: 'Invoice' }],
    ['get_all_schemas', {}],
    ['query_class', { class_name: 't_globex.invoices' }],
    ['query_class', { class_name: 'Invoice', database: 't_globex', tenant: 'globex' }],
    ['query_class', { class_name: 'of_globex' }],
    ['query_class', { class_name: 'Invoise' }],
  ] as const)('shows nothing of another tenant in %s %j', async (tool, args) => {
    // The other one is first, so that whatever is kept is its.
    await ask(tool, args, 'globex');
    const { wire } = await ask(tool, args, 'acme');
    // What a caller wrote is its own.
    const named = JSON.stringify(args).includes('globex');
    expect(wire).not.toMatch(named ? /(SECRET|t)-globex|globex-\d|SECRET-7|7-1/ : /globex|SECRET-7|7-1/);
    const other = await ask(tool, args, 'globex');
    expect(other.wire).not.toMatch(/acme|SECRET-7|7-1/);
  });

  it.each([
    ['resources/read', { uri: 'parse://Invoice/samples' }],
    ['resources/read', { uri: 'parse://Invoice/schema' }],
    ['resources/read', { uri: 'parse://Invoice/count' }],
    ['resources/list', {}],
    ['tools/list', {}],
    [
      'completion/complete',
      {
        ref: { type: 'ref/resource', uri: 'parse://{className}/samples' },
        argument: { name: 'className', value: '' },
      },
    ],
  ])('shows nothing of another tenant in %s %j', async (method, params) => {
    const read = async (agent: string) => JSON.stringify(await rpc(service, method, params, as(agent)));
    await read('globex');
    expect(await read('acme')).not.toMatch(/globex|SECRET-7/);
    expect(await read('globex')).not.toMatch(/SECRET-acme|acme-\d|t_acme/);
    expect(await read('nobody')).not.toMatch(/SECRET/);
  });

  it('exists for a tenant whose database has its collection', async () => {
    expect((await ask('count_objects', { class_name: 'Own' }, 'acme')).data).toMatchObject({ count: 1 });
    const none = await ask('count_objects', { class_name: 'Own' }, 'globex');
    expect([none.isError, none.wire]).toEqual([true, expect.not.stringContaining('acme')]);
  });

  it.each([...Object.keys(UNUSABLE).map((name) => `x_${name}`), 'nobody', 'x_fixed'])(
    'is refused to %s, whose tenant names no database of its own',
    async (agent) => {
      for (const [tool, args] of [
        ['query_class', { class_name: 'Invoice' }],
        ['get_schema', { class_name: 'Invoice' }],
        ['create_object', { class_name: 'Invoice', fields: { number: 'stolen' } }],
        ['aggregate', { class_name: 'Plan', pipeline: [{ $unionWith: { coll: 'Invoice' } }] }],
      ] as const) {
        const refused = await ask(tool, args, agent);
        expect([tool, refused.isError, refused.wire]).toEqual([
          tool,
          true,
          expect.not.stringContaining('SECRET'),
        ]);
      }
      const refused = await ask('query_class', { class_name: 'Invoice' }, agent);
      expect([refused.code, refused.details]).toEqual(['access_denied', { kind: 'tenant_scope' }]);
      expect((await ask('get_all_schemas', {}, agent)).wire).not.toContain('Invoice');
      expect((await ask('query_class', { class_name: 'Plan' }, agent)).isError).toBe(false);
    },
  );

  it('tells each tenant of changes in its own database alone', async () => {
    const listen = async (agent: string) => {
      const client = new Client({ name: 'listener', version: '1' });
      const updated: string[] = [];
      client.setNotificationHandler(
        ResourceUpdatedNotificationSchema,
        ({ params }) => void updated.push(params.uri),
      );
      await client.connect(
        new StreamableHTTPClientTransport(new URL(service.url), { requestInit: { headers: as(agent) } }),
      );
      await client.subscribeResource({ uri: 'parse://Invoice/count' });
      return { client, updated };
    };
    const [acme, globex] = [await listen('acme'), await listen('globex')];
    const { insertedId } = await documents
      .db('t_acme')
      .collection('invoices')
      .insertOne({ number: 'acme-3' });
    await vi.waitFor(() => expect(acme.updated).toHaveLength(1), SOON);
    await documents
      .db('t_globex')
      .collection('invoices')
      .updateOne({ _id: shared }, { $set: { amount: 3 } });
    await vi.waitFor(() => expect(globex.updated).toHaveLength(1), SOON);
    expect(acme.updated).toHaveLength(1);
    await documents.db('t_acme').collection('invoices').deleteOne({ _id: insertedId });
    await Promise.all([acme.client.close(), globex.client.close()]);
  });

  it('is named with the entry of its database in the records', async () => {
    await ask('count_objects', { class_name: 'Invoice' }, 'acme');
    await vi.waitFor(() => {
      const counted = listLogged(service, 'call').filter(({ tool }) => tool === 'count_objects');
      expect(counted.at(-1)).toMatchObject({ class: 'Invoice', database: 'app' });
    }, SOON);
  });

  it('is written by init for the tenant that is named', async () => {
    const cwd = dirname(service.file);
    const written = await runCommand(['init', '--database', 'app', '--tenant', 'acme'], '', { cwd });
    expect([written.code, written.stdout]).toEqual([0, expect.stringContaining('collection: of_acme')]);
    for (const tenant of [[], ['--tenant', '../globex'], ['--tenant', 'fixed']]) {
      const refused = await runCommand(['init', '--database', 'app', ...tenant], '', { cwd });
      expect([refused.code, refused.stdout, refused.stderr]).toEqual([
        2,
        '',
        expect.stringContaining('--tenant'),
      ]);
    }
  });

  it('is no fault for doctor and policy check', async () => {
    const cwd = dirname(service.file);
    const doctor = await runCommand(['doctor'], '', { cwd });
    expect(doctor.stdout).toMatch(/mongodb\.further.*app: MongoDB/);
    expect(doctor.stdout).not.toMatch(/classes\.(database|collection|view)/);
    const checked = await runCommand(['policy', 'check'], '', { cwd });
    expect([checked.code, checked.stdout + checked.stderr]).toEqual([
      0,
      expect.not.stringContaining('no class'),
    ]);
  });
});

describe('a tenant whose name is the whole name of the database', () => {
  const TAKEN = ['admin', 'local', 'config', 't_fixed', 'parley_audit', 'parley'];

  it('is refused where that is a database of the server or of the configuration', async () => {
    const bare = await startService({
      config: {
        databases: {
          shop: { uri: 'embedded' },
          bare: { uri: cluster.uriOf('unused'), storage: 'plain', name: '{tenant}' },
          fixed: { uri: cluster.uriOf('t_fixed'), storage: 'plain' },
        },
        agents: Object.fromEntries([...TAKEN, 'acme'].map((name) => [`x_${name}`, { tenantId: name }])),
        auth: [...TAKEN, 'acme'].map((name) => ({ apiKey: name, agent: `x_${name}` })),
        policy: { classes: { Bare: { database: 'bare', collection: 'invoices' } } },
      },
    });
    try {
      for (const tenant of TAKEN) {
        const refused = await callTool(bare, 'query_class', { class_name: 'Bare' }, as(tenant));
        expect([tenant, refused.code, refused.details]).toEqual([
          tenant,
          'access_denied',
          { kind: 'tenant_scope' },
        ]);
        expect(refused.wire).not.toContain('SECRET');
      }
      const found = await callTool(bare, 'count_objects', { class_name: 'Bare' }, as('acme'));
      expect(found.data).toMatchObject({ count: 2 });
    } finally {
      await bare.stop();
    }
  });
});

describe('a configuration of one database for each tenant', () => {
  it.each<[string, object, string]>([
    [
      'of the first one',
      { shop: { uri: 'mongodb://127.0.0.1:1', name: 'x_{tenant}' } },
      'databases.shop.name',
    ],
    ['with the tenant twice', { app: { name: '{tenant}_{tenant}' } }, 'databases.app.name'],
    ['with another place', { app: { name: 't_{user}' } }, 'databases.app.name'],
    [
      'whose names may be those of another entry',
      { app: {}, more: { name: 't_eu_{tenant}' } },
      'databases.more.name',
    ],
  ])('does not start %s', async (_, entries, place) => {
    const first = { shop: { uri: 'embedded' } };
    const databases = Object.fromEntries(
      Object.entries({ ...first, ...entries }).map(([label, entry]) => [
        label,
        label === 'shop'
          ? entry
          : { uri: 'mongodb://127.0.0.1:1', storage: 'plain', name: 't_{tenant}', ...(entry as object) },
      ]),
    );
    const { code, stderr } = await startAndFail({ config: { databases } });
    expect([code, stderr]).toEqual([1, expect.stringContaining(place)]);
  });
});
