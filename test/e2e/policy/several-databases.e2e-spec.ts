import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { MongoClient, ObjectId } from 'mongodb';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import {
  callTool,
  type Database,
  GATES_OPEN,
  listLogged,
  type Service,
  startAndFail,
  startDatabase,
  startService,
} from '../../support/service.js';
import { runCommand } from '../../support/terminal.js';

const SOON = { timeout: 30_000, interval: 50 };
const text = { type: 'String' };
const SEED = {
  schemas: [
    {
      className: 'Order',
      fields: { number: text, customer: { type: 'Pointer', targetClass: 'Note' } },
      classLevelPermissions: { find: { '*': true }, get: { '*': true }, count: { '*': true } },
    },
    { className: 'Note', fields: { text } },
    // Another class of the same name lies in the first database, and is not the one that is declared.
    { className: 'Customer', fields: { name: text } },
  ],
  objects: {
    Order: [{ objectId: 'o1', number: 'A1' }],
    Note: [{ objectId: 'n1', text: 'a note' }],
    Customer: [{ objectId: 'c9', name: 'WRONG-database' }],
  },
};
const ada = new ObjectId();

let crm: Database;
let archive: Database;
let archivePort: number;
let documents: MongoClient;
let service: Service;

const configuration = (more: object = {}) => ({
  databases: {
    shop: { uri: 'embedded', seed: './seed.json' },
    crm: { uri: crm.uriOf('crm'), storage: 'plain' },
    archive: { uri: archive.uriOf('old'), storage: 'plain', readOnly: true, required: false },
  },
  subscriptions: { debounce: 0.05 },
  agents: {
    clerk: { permissions: 'admin', rateLimit: 1_000_000 },
    tenant: { tenantId: 'acme', rateLimit: 1_000_000 },
  },
  auth: ['clerk', 'tenant'].map((name) => ({ apiKey: name, agent: name })),
  policy: {
    classes: {
      Order: { database: 'shop' },
      Note: {},
      Customer: {
        database: 'crm',
        collection: 'customers',
        properties: { account: { type: 'Pointer', targetClass: 'Account' } },
        masks: { email: 'mask' },
        tenantScope: { field: 'tenant', bypass: ['admin'] },
      },
      Account: { database: 'crm', collection: 'accounts', properties: { plan: { type: 'String' } } },
      // Its collection has the name of a class of Parse in the first database.
      Sale: { database: 'crm', collection: 'Order' },
      Bill: {
        database: 'archive',
        collection: 'bills',
        properties: { customer: { type: 'Pointer', targetClass: 'Customer' } },
      },
    },
  },
  ...more,
});

const as = (agent: string) => ({ 'X-MCP-API-Key': agent });
const ask = (tool: string, args: object, agent = 'clerk') => callTool(service, tool, args, as(agent));
const ready = async () => {
  const response = await fetch(`${service.origin}/ready`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

beforeAll(async () => {
  [crm, archive] = await Promise.all([startDatabase({ schemas: [] }), startDatabase({ schemas: [] })]);
  archivePort = Number(new URL(archive.uri).port);
  documents = new MongoClient(crm.uriOf('crm'));
  const account = new ObjectId();
  await documents.db().collection('accounts').insertOne({ _id: account, plan: 'gold' });
  await documents
    .db()
    .collection('customers')
    .insertMany([
      { _id: ada, name: 'Ada', email: 'ada@example.com', tenant: 'acme', account, createdAt: new Date() },
      { name: 'Bob', email: 'bob@example.com', tenant: 'globex', createdAt: new Date() },
    ]);
  await documents.db().collection('Order').insertOne({ number: 'S1' });
  await fillArchive();
  service = await startService({ config: configuration(), seed: SEED, env: GATES_OPEN });
});
afterAll(async () => {
  await service?.stop();
  await documents?.close();
  await Promise.all([crm?.stop(), archive?.stop()]);
});

async function fillArchive(): Promise<void> {
  const client = new MongoClient(archive.uriOf('old'));
  await client.db().collection('bills').insertOne({ total: 12, customer: ada });
  await client.close();
}

describe('classes of several databases', () => {
  const run = (...args: string[]) => runCommand(args, '', { cwd: dirname(service.file) });

  it('are explained with the database that would receive the commands', async () => {
    const explain = async (class_name: string) =>
      (await run('explain', 'query_class', JSON.stringify({ class_name }), '--agent', 'clerk')).stdout;
    expect(await explain('Customer')).toMatch(/find +Customer +of the database crm/);
    expect(await explain('Order')).not.toContain('of the database');
  });

  it('are written from a database beside the first one of the configuration', async () => {
    const written = await run('init', '--database', 'crm');
    expect([written.code, written.stderr]).toEqual([0, expect.stringContaining('policy check')]);
    expect(written.stdout).toMatch(/database: crm\n/);
    expect(written.stdout).toMatch(/collection: customers\n/);
    expect(written.stdout).toMatch(/class of this name already[^]*Order:/);
    expect(written.stdout).not.toMatch(/mongodb:|ada@example/);
    const none = await run('init', '--database', 'crn');
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('write one of crm, archive')]);
    expect((await run('init', '--database', 'crm', '--uri', crm.uri)).code).toBe(2);
  });

  it('are read each from the database that is declared for it', async () => {
    const orders = await ask('query_class', { class_name: 'Order' });
    expect(orders.data['results']).toMatchObject([{ number: 'A1' }]);
    const customers = await ask('query_class', { class_name: 'Customer', order: 'name' });
    expect(customers.wire).not.toContain('WRONG-database');
    expect(customers.data['results']).toMatchObject([{ name: 'Ada' }, { name: 'Bob' }]);
    expect((await ask('count_objects', { class_name: 'Bill' })).data).toMatchObject({ count: 1 });
    const sales = await ask('query_class', { class_name: 'Sale' });
    expect([sales.data['results'], sales.wire]).toEqual([
      [expect.objectContaining({ number: 'S1' })],
      expect.not.stringContaining('A1'),
    ]);
    const groups = await ask('group_by', { class_name: 'Customer', field: 'tenant' });
    expect(groups.wire).toContain('globex');
  });

  it('keep their rules: masks, tenants', async () => {
    const own = await ask('query_class', { class_name: 'Customer' }, 'tenant');
    expect(own.data['results']).toMatchObject([{ name: 'Ada' }]);
    expect(own.wire).not.toContain('ada@example.com');
    expect(own.wire).not.toContain('Bob');
  });

  it('are followed by include, within one database and into another', async () => {
    const bills = await ask('query_class', { class_name: 'Bill', include: ['customer', 'customer.account'] });
    expect(bills.data['results']).toMatchObject([
      { total: 12, customer: { name: 'Ada', account: { plan: 'gold' } } },
    ]);
    expect(bills.wire).not.toContain('ada@example.com');
  });

  it('leave an included row out where the rules of its own database do', async () => {
    const bob = await documents.db().collection('customers').findOne({ name: 'Bob' });
    const client = new MongoClient(archive.uriOf('old'));
    const { insertedId } = await client.db().collection('bills').insertOne({ total: 99, customer: bob?._id });
    const found = await ask(
      'query_class',
      { class_name: 'Bill', where: { total: 99 }, include: ['customer'] },
      'tenant',
    );
    await client.db().collection('bills').deleteOne({ _id: insertedId });
    await client.close();
    expect(found.data['results']).toHaveLength(1);
    expect(found.wire).not.toContain('Bob');
  });

  it.each([
    [
      'a join',
      'aggregate',
      {
        class_name: 'Bill',
        pipeline: [
          { $lookup: { from: 'Customer', localField: 'customer', foreignField: 'objectId', as: 'c' } },
        ],
      },
    ],
    ['a union', 'aggregate', { class_name: 'Order', pipeline: [{ $unionWith: { coll: 'Customer' } }] }],
    [
      'a join inside a join',
      'aggregate',
      {
        class_name: 'Customer',
        pipeline: [
          {
            $lookup: {
              from: 'Account',
              as: 'a',
              pipeline: [{ $lookup: { from: 'Order', as: 'o', pipeline: [] } }],
            },
          },
        ],
      },
    ],
    [
      '$inQuery',
      'query_class',
      {
        class_name: 'Bill',
        where: { customer: { $inQuery: { className: 'Customer', where: { name: 'Ada' } } } },
      },
    ],
    [
      '$select',
      'query_class',
      {
        class_name: 'Order',
        where: { number: { $select: { query: { className: 'Customer', where: {} }, key: 'name' } } },
      },
    ],
  ])('refuse %s across them, and say what to do', async (_, tool, args) => {
    const refused = await ask(tool, args);
    expect([refused.code, refused.details]).toEqual(['invalid_query', { kind: 'cross_database' }]);
    expect(refused.text).toContain('in calls of their own');
  });

  it('say the same of a class that the agent may not see as where there is one database', async () => {
    const hidden = await ask('aggregate', {
      class_name: 'Order',
      pipeline: [{ $unionWith: { coll: '_Session' } }],
    });
    expect(hidden.details).not.toMatchObject({ kind: 'cross_database' });
  });

  it('are written where they are stored', async () => {
    const accounts = documents.db().collection('accounts');
    const made = await ask('create_object', { class_name: 'Account', fields: { plan: 'silver' } });
    expect([made.isError, made.text]).toEqual([false, expect.any(String)]);
    expect(await accounts.countDocuments({ plan: 'silver' })).toBe(1);
    const { objectId } = made.data['object'] as { objectId: string };
    await ask('update_object', { class_name: 'Account', object_id: objectId, fields: { plan: 'tin' } });
    expect(await accounts.countDocuments({ plan: 'tin' })).toBe(1);
    await ask('delete_object', { class_name: 'Account', object_id: objectId });
    expect(await accounts.countDocuments({ plan: 'tin' })).toBe(0);
  });

  it.each([
    ['create_object', { class_name: 'Bill', fields: { total: 1 } }],
    ['update_object', { class_name: 'Bill', object_id: String(ada), fields: { total: 1 } }],
    ['delete_object', { class_name: 'Bill', object_id: String(ada) }],
    ['delete_class', { class_name: 'Bill' }],
  ])('are not written by %s where their database is only read', async (tool, args) => {
    const refused = await ask(tool, args);
    expect([refused.code, refused.details]).toMatchObject(['access_denied', { kind: 'read_only_database' }]);
  });

  it('tell of changes in their own databases', async () => {
    const client = new Client({ name: 'listener', version: '1' });
    const updated: string[] = [];
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void updated.push(params.uri),
    );
    await client.connect(
      new StreamableHTTPClientTransport(new URL(service.url), { requestInit: { headers: as('clerk') } }),
    );
    for (const name of ['Order', 'Account', 'Bill'])
      await client.subscribeResource({ uri: `parse://${name}/count` });
    await documents.db().collection('accounts').insertOne({ plan: 'iron' });
    await vi.waitFor(() => expect(updated).toEqual(['parse://Account/count']), SOON);
    await documents.db().collection('accounts').deleteOne({ plan: 'iron' });
    await client.close();
  });
});

describe('an operator', () => {
  it('reads in the log of a call which further database holds the class', async () => {
    await ask('count_objects', { class_name: 'Bill' });
    await ask('count_objects', { class_name: 'Order' });
    await vi.waitFor(() => {
      const counted = listLogged(service, 'call').filter(({ tool }) => tool === 'count_objects');
      expect(counted.at(-2)).toMatchObject({ class: 'Bill', database: 'archive' });
      expect(counted.at(-1)).not.toHaveProperty('database');
    }, SOON);
  });

  it('learns from doctor and policy check what each database says', async () => {
    const cwd = dirname(service.file);
    const doctor = await runCommand(['doctor'], '', { cwd });
    expect(doctor.stdout).toMatch(/mongodb\.further.*crm: MongoDB/);
    expect(doctor.stdout).toMatch(/mongodb\.further.*archive: MongoDB/);
    const checked = await runCommand(['policy', 'check'], '', { cwd });
    expect([checked.code, checked.stdout + checked.stderr]).toEqual([
      0,
      expect.not.stringContaining('no class'),
    ]);
  });

  it('learns from policy diff that a class is in another database', async () => {
    const cwd = dirname(service.file);
    const { policy, ...others } = configuration();
    const Account = { ...policy.classes.Account, database: 'archive' };
    const moved = { ...others, policy: { classes: { ...policy.classes, Account } } };
    writeFileSync(join(cwd, 'moved.yaml'), stringify({ ...moved, server: { port: 0 } }));
    const diff = await runCommand(['policy', 'diff', 'parley.yaml', 'moved.yaml'], '', { cwd });
    expect([diff.code, diff.stderr]).toEqual([0, '']);
    expect(diff.stdout).toMatch(/clerk\n {2}Account\n {4}~ database: crm -> archive\n/);
    expect(diff.stdout).not.toMatch(/Customer|mongodb:/);
  });

  it('learns from doctor that two addresses lead to one database', async () => {
    const { databases } = configuration();
    const again = { ...databases.crm, uri: databases.crm.uri.replace('127.0.0.1', 'localhost') };
    const other = await startService({
      config: configuration({ databases: { ...databases, again } }),
      seed: SEED,
    });
    try {
      const doctor = await runCommand(['doctor'], '', { cwd: dirname(other.file) });
      expect(doctor.stdout).toMatch(/mongodb\.same.*again.*crm/);
    } finally {
      await other.stop();
    }
  });

  it('may leave the address of the first database to the environment', async () => {
    const other = await startService({
      config: configuration({
        databases: {
          ...configuration().databases,
          shop: { uri: 'mongodb://127.0.0.1:1', storage: 'plain' },
        },
        policy: { classes: { Account: { collection: 'accounts' } } },
      }),
      env: { MONGODB_URI: `${crm.uriOf('crm')}` },
    }).catch((error: unknown) => String(error));
    // It is the database that is listed as crm.
    expect(other).toContain('databases.crm.name');
  });
});

describe('a database that is away', () => {
  it('refuses calls of its classes alone, leaves the service ready where it is not required, and returns', async () => {
    await archive.stop();
    await vi.waitFor(async () => {
      const bill = await ask('query_class', { class_name: 'Bill' });
      expect(bill.text).toContain('does not answer');
    }, SOON);
    const bill = await ask('query_class', { class_name: 'Bill' });
    expect(bill.wire).not.toMatch(/127\.0\.0\.1|localhost|mongodb|ECONN/);
    expect((await ask('query_class', { class_name: 'Order' })).isError).toBe(false);
    expect((await ask('query_class', { class_name: 'Customer' })).isError).toBe(false);
    expect(await ready()).toMatchObject({
      status: 200,
      body: { dependencies: { mongodb: 'up', 'mongodb.crm': 'up', 'mongodb.archive': 'down' } },
    });
    archive = await startDatabase({ schemas: [] }, archivePort);
    await fillArchive();
    await vi.waitFor(async () => {
      expect((await ask('query_class', { class_name: 'Bill' })).data['results']).toHaveLength(1);
    }, SOON);
  });

  it('does not stop the start', async () => {
    await archive.stop();
    const other = await startService({ config: configuration(), seed: SEED });
    try {
      expect((await callTool(other, 'query_class', { class_name: 'Customer' }, as('clerk'))).isError).toBe(
        false,
      );
      expect((await callTool(other, 'query_class', { class_name: 'Bill' }, as('clerk'))).text).toContain(
        'does not answer',
      );
    } finally {
      await other.stop();
      archive = await startDatabase({ schemas: [] }, archivePort);
      await fillArchive();
    }
  });

  it('keeps no slot of the others while it stalls and calls of the same caller wait for it', async () => {
    archive.pause();
    const waiting = Array.from({ length: 15 }, () => ask('count_objects', { class_name: 'Bill' }));
    try {
      const customers = await ask('query_class', { class_name: 'Customer' });
      expect([customers.isError, customers.text]).toEqual([false, expect.any(String)]);
    } finally {
      archive.resume();
      await Promise.all(waiting);
    }
  });

  it('makes the service not ready where it is required', async () => {
    crm.pause();
    try {
      await vi.waitFor(async () => expect((await ready()).status).toBe(503), SOON);
    } finally {
      crm.resume();
    }
    await vi.waitFor(async () => expect((await ready()).status).toBe(200), SOON);
  });
});

describe('a reload', () => {
  const signal = async (change: ReturnType<typeof configuration>) => {
    const before = service.output().stderr.split('[Reload] configuration version').length;
    service.reconfigure(change);
    service.signal('SIGHUP');
    await vi.waitFor(
      () => expect(service.output().stderr.split('[Reload] configuration version').length).toBe(before + 1),
      SOON,
    );
  };

  it('adds, changes and removes a database without a restart, and moves a class and its subscriptions', async () => {
    const { databases, policy, ...others } = configuration();
    await documents.db('added').collection('accounts').insertOne({ plan: 'platinum' });
    const client = new Client({ name: 'listener', version: '1' });
    const updated: string[] = [];
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void updated.push(params.uri),
    );
    await client.connect(
      new StreamableHTTPClientTransport(new URL(service.url), { requestInit: { headers: as('clerk') } }),
    );
    await client.subscribeResource({ uri: 'parse://Account/count' });
    const hears = async (name: string) => {
      const heard = updated.length;
      await vi.waitFor(async () => {
        await documents.db(name).collection('accounts').insertOne({ plan: 'lead' });
        expect(updated.length).toBeGreaterThan(heard);
      }, SOON);
    };
    const added = { uri: crm.uriOf('added'), storage: 'plain' };
    const Account = { ...policy.classes.Account, database: 'added' };
    const moved = {
      ...others,
      databases: { ...databases, added },
      policy: { classes: { ...policy.classes, Account } },
    };
    await signal(moved as never);
    const accounts = await ask('query_class', { class_name: 'Account' });
    expect(accounts.data['results']).toMatchObject([{ plan: 'platinum' }]);
    expect((await ready()).body).toMatchObject({ dependencies: { 'mongodb.added': 'up' } });
    await hears('added');

    // The same name is another database.
    await documents.db('other').collection('accounts').insertOne({ plan: 'other' });
    const changed = { ...added, uri: crm.uriOf('other'), readOnly: true };
    await signal({ ...moved, databases: { ...databases, added: changed } } as never);
    expect((await ask('query_class', { class_name: 'Account' })).data['results']).toMatchObject([
      { plan: 'other' },
    ]);
    const refused = await ask('create_object', { class_name: 'Account', fields: { plan: 'x' } });
    expect(refused.details).toMatchObject({ kind: 'read_only_database' });
    await hears('other');
    await client.close();

    await signal(configuration());
    expect((await ask('count_objects', { class_name: 'Account' })).isError).toBe(false);
    expect((await ask('query_class', { class_name: 'Account' })).wire).not.toMatch(/platinum|other/);
    expect((await ready()).body).not.toMatchObject({
      dependencies: { 'mongodb.added': expect.anything() as unknown },
    });
  });

  it('refuses an address that cannot be one, and keeps what is served', async () => {
    const { databases, ...others } = configuration();
    service.reconfigure({
      ...others,
      databases: { ...databases, bad: { uri: 'mongodb://a,b:x/y', storage: 'plain' } },
    });
    service.signal('SIGHUP');
    await vi.waitFor(() => expect(service.output().stderr).toContain('databases.bad.uri'), SOON);
    expect((await ask('count_objects', { class_name: 'Account' })).isError).toBe(false);
    service.reconfigure(configuration());
  });
});

describe('a configuration of several databases', () => {
  it.each<[string, (one: ReturnType<typeof configuration>) => object, string]>([
    ['beside database', () => ({ database: { storage: 'parse' } }), 'database: is the short form'],
    [
      'with the same one twice',
      ({ databases }) => ({ databases: { ...databases, again: { ...databases.crm } } }),
      'databases.again.name',
    ],
    [
      'with a class of one that is not there',
      ({ policy }) => ({ policy: { classes: { ...policy.classes, X: { database: 'cmr' } } } }),
      'policy.classes.X.database',
    ],
    [
      'with users of another than the first',
      ({ policy }) => ({ policy: { classes: { ...policy.classes, _User: { database: 'crm' } } } }),
      'policy.classes._User.database',
    ],
    [
      'with a filter that asks a class of another database',
      ({ policy }) => ({
        policy: {
          classes: {
            ...policy.classes,
            Order: {
              canonicalFilter: { customer: { $inQuery: { className: 'Customer', where: { name: 'x' } } } },
            },
          },
        },
      }),
      'policy.classes.Order.canonicalFilter',
    ],
    [
      'whose first one is not required',
      ({ databases }) => ({ databases: { ...databases, shop: { ...databases.shop, required: false } } }),
      'databases.shop.required',
    ],
    [
      'with a second embedded one',
      ({ databases }) => ({ databases: { ...databases, two: { storage: 'plain' } } }),
      'databases.two.uri',
    ],
  ])('does not start %s', async (_, change, place) => {
    const { code, stderr } = await startAndFail({
      config: { ...configuration(), ...change(configuration()) },
      seed: SEED,
    });
    expect(code).toBe(1);
    expect(stderr).toContain(place);
  });
});
