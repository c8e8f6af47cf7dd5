import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { type Document, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { callTool, rpc, type Service, startService, WRITES_OPEN } from '../../support/service.js';
import { runCommand } from '../../support/terminal.js';
import { makeFolder } from '../../support/started.js';

const SECRET = 's3cretWord';
const SOON = { timeout: 20_000, interval: 50 };
const settings = {
  agents: { default: { permissions: 'admin', rateLimit: 1_000_000 } },
  policy: { unlistedClasses: 'allow', classes: { Note: {} } },
};
const schema: Document = {
  _id: 'Note',
  objectId: 'string',
  createdAt: 'date',
  updatedAt: 'date',
  title: 'string',
  n: 'number',
};

type Row = Document & { _id: string };
/** Rows of 60 KB: more than an answer of MongoDB holds at once. */
const MANY = 400;

const folder = makeFolder('faults');

async function prepare(uri: string, options = {}): Promise<MongoClient> {
  const client = await MongoClient.connect(uri, options);
  await client.db('shop').collection('_SCHEMA').insertOne(schema);
  await client
    .db('shop')
    .collection<{ _id: string }>('Note')
    .insertOne({ _id: 'first', title: 'first', n: 0 } as { _id: string });
  return client;
}

const startOn = (uri: string, fastReads = false): Promise<Service> =>
  startService({ config: { ...settings, database: { uri, name: 'shop', fastReads } }, env: WRITES_OPEN });

/** Runs a command with the database, and expects no credential and no stack in what it writes. */
async function command(
  uri: string,
  ...args: string[]
): Promise<{ code: number | null; text: string; stderr: string }> {
  writeFileSync(join(folder, 'parley.yaml'), stringify(settings));
  const env = { MONGODB_URI: uri, MONGODB_DATABASE: 'shop' };
  const { code, stdout, stderr } = await runCommand(args, '', { cwd: folder, env });
  const text = stdout + stderr;
  expect(text).not.toContain(SECRET);
  expect(text).not.toMatch(/^\s+at .*:\d+/m);
  return { code, text, stderr };
}

describe('a user of MongoDB', () => {
  let server: EmbeddedMongo;
  const uriOf = (user: string, password = SECRET) =>
    `mongodb://${user}:${password}@127.0.0.1:${server.port}/shop?authSource=admin`;
  beforeAll(async () => {
    server = await EmbeddedMongo.start({
      users: [
        { user: 'root', password: SECRET, roles: [{ role: 'root', db: 'admin' }] },
        { user: 'reader', password: SECRET, roles: [{ role: 'read', db: 'shop' }] },
        { user: 'nobody', password: SECRET, roles: [] },
      ],
    });
    await (await prepare(uriOf('root'))).close();
  });
  afterAll(() => server.close());

  it('who may only read reads, and every write says that the right is missing, as the doctor did before', async () => {
    const doctor = await command(uriOf('reader'), 'doctor');
    expect(doctor.text).toMatch(/^warn {2}mongodb\.rights +the user may only read shop: every write/m);
    const service = await startOn(uriOf('reader'));
    try {
      const read = await callTool(service, 'query_class', { class_name: 'Note' });
      expect(read).toMatchObject({ isError: false });
      const write = await callTool(service, 'create_object', { class_name: 'Note', fields: { title: 'no' } });
      expect(write).toMatchObject({ isError: true, code: 'parse_error' });
      expect(write.text).toContain('does not permit this to the service');
      expect(write.text).not.toMatch(/not known|not authorized|reader/);
    } finally {
      await service.stop();
    }
  });

  it('with a wrong password, or without a right, gets one line that says so from every command', async () => {
    const wrong = uriOf('reader', `${SECRET}-wrong`);
    const doctor = await command(wrong, 'doctor');
    expect(doctor.code).toBe(1);
    expect(doctor.text).toMatch(
      /^fail {2}mongodb +it refuses the user or the password \(failed\)\n +-> check user/m,
    );
    const check = await command(wrong, 'policy', 'check');
    expect(check.code).toBe(1);
    expect(check.text).toMatch(
      /^fault {3}database: .*names were not compared .*refuses the user or the pass/m,
    );
    const init = await command(wrong, 'init', '--uri', wrong, '--out', '-');
    expect(init).toMatchObject({ code: 1 });
    expect(init.stderr).toMatch(
      /^the database could not be read \(failed\): it refuses the user or the password; check .*\n$/,
    );
    const none = await command(uriOf('nobody'), 'init', '--uri', uriOf('nobody'), '--out', '-');
    expect(none.stderr).toMatch(/^the database could not be read \(failed\): .*lacks a right; grant .*\n$/);
  });

  it('with a wrong password at the start is named to the operator, and to a caller nothing but that it is refused', async () => {
    const service = await startOn(uriOf('reader', `${SECRET}-wrong`));
    try {
      await expect
        .poll(() => service.output().stderr + service.output().stdout, SOON)
        .toMatch(/the database cannot be used: it refuses the user or the password; check user/);
      const ready = await fetch(`${service.origin}/ready`);
      expect([ready.status, await ready.json()]).toEqual([
        503,
        { status: 'unavailable', dependencies: { mongodb: 'down' } },
      ]);
      const answers = [
        await callTool(service, 'query_class', { class_name: 'Note' }),
        await callTool(service, 'create_object', { class_name: 'Note', fields: { title: 'no' } }),
        await callTool(service, 'get_all_schemas'),
      ];
      const message =
        'Parse error: the database refuses the login of the service: its operator has to correct it';
      for (const { isError, code, text, wire } of answers) {
        expect([isError, code, text]).toEqual([true, 'parse_error', message]);
        expect(wire).not.toMatch(/reader|s3cret|Authentication|Mongo|SCRAM|127\.0\.0\.1/);
      }
      const listed = await rpc(service, 'resources/list');
      expect(listed.body.error).toEqual({ code: -32603, message });
      const { stdout, stderr } = service.output();
      expect(stdout + stderr).not.toContain(SECRET);
    } finally {
      await service.stop();
    }
  });

  it('with a wrong password is named with its reason by explain, policy test and policy diff, which fail', async () => {
    const wrong = uriOf('reader', `${SECRET}-wrong`);
    const explained = await command(
      wrong,
      'explain',
      'query_class',
      '{"class_name":"Note"}',
      '--agent',
      'default',
    );
    expect(explained.code).toBe(1);
    expect(explained.text).toMatch(/^ +told +Parse error: the database refuses the login/m);
    const cases = [
      { agent: 'default', tool: 'query_class', arguments: { class_name: 'Note' }, expect: { allowed: true } },
    ];
    writeFileSync(join(folder, 'cases.yaml'), stringify(cases));
    expect((await command(wrong, 'policy', 'test', 'cases.yaml')).code).toBe(1);
    const diff = await command(wrong, 'policy', 'diff', 'parley.yaml', 'parley.yaml');
    expect([diff.code, diff.stderr]).toEqual([1, expect.stringMatching(/refuses the user or the password/)]);
  });

  it('with a wrong password at a sink lets no call run, and log and commands name the sink in one line', async () => {
    const audit = {
      sinks: [{ kind: 'mongodb', uri: uriOf('reader', `${SECRET}-wrong`), database: 'audit' }],
    };
    const database = { uri: uriOf('reader'), name: 'shop' };
    const service = await startService({ config: { ...settings, database, audit }, env: WRITES_OPEN });
    try {
      const { code, wire } = await callTool(service, 'query_class', { class_name: 'Note' });
      expect(code).toBe('audit_unavailable');
      expect(wire).not.toMatch(/mongo|Authentication|password/i);
      await expect
        .poll(() => service.output().stderr + service.output().stdout, SOON)
        .toContain('audit records cannot be kept (it refuses the user or the password): calls are refused');
    } finally {
      await service.stop();
    }
    writeFileSync(join(folder, 'audited.yaml'), stringify({ ...settings, audit }));
    const doctor = await command(uriOf('reader'), 'doctor', '--config', 'audited.yaml');
    expect(doctor.code).toBe(1);
    expect(doctor.text).toMatch(/^fail {2}audit\.mongodb +audit: it refuses the user or the password$/m);
    for (const args of [
      ['audit', 'verify'],
      ['audit', 'search'],
      ['policy', 'suggest'],
    ])
      expect(await command(uriOf('reader'), ...args, '--config', 'audited.yaml')).toMatchObject({
        code: 1,
        stderr:
          'the collection of audit records cannot be used: it refuses the user or the password; check its sink in audit.sinks\n',
      });
  });
});

describe('a database that does not answer', () => {
  it('fails policy check, which could not compare the names of the policy with it', async () => {
    const checked = await command('mongodb://127.0.0.1:1/shop', 'policy', 'check', '--json');
    expect(checked.code).toBe(1);
    expect(JSON.parse(checked.text)).toMatchObject({
      faults: [
        { path: 'database', message: expect.stringMatching(/could not be read \(unavailable\), so names/) },
      ],
    });
    // Where none is configured there is nothing to compare with.
    const without = await command('embedded', 'policy', 'check');
    expect(without.code).toBe(0);
    expect(without.text).toMatch(/^warning database: no database with classes is configured/m);
  });

  it('is named with its reason by the commands', async () => {
    const hung = await EmbeddedMongo.start();
    await hung.pause();
    try {
      const uri = `mongodb://x:${SECRET}@127.0.0.1:${hung.port}/shop`;
      const lines = await Promise.all([
        command(uri, 'init', '--uri', uri, '--out', '-'),
        command(
          uri.replace(String(hung.port), '1'),
          'init',
          '--uri',
          uri.replace(String(hung.port), '1'),
          '--out',
          '-',
        ),
      ]);
      expect(lines.map(({ stderr }) => stderr)).toEqual([
        expect.stringMatching(
          /^the database could not be read \(unavailable\): it does not answer; check .*\n$/,
        ),
        expect.stringMatching(
          /^the database could not be read \(unavailable\): nobody listens at its address; check .*\n$/,
        ),
      ]);
      expect(lines.map(({ code }) => code)).toEqual([1, 1]);
    } finally {
      await hung.close();
    }
  });
});

describe.each([
  ['the driver', false],
  ['connections beside the driver', true],
])('a replica set read over %s', { timeout: 120_000 }, (_way, fastReads) => {
  let server: EmbeddedMongo;
  let client: MongoClient;
  let service: Service;
  beforeAll(async () => {
    server = await EmbeddedMongo.start({ members: 2 });
    client = await prepare(server.uri);
    const shop = client.db('shop');
    await shop.collection<Row>('_SCHEMA').insertOne({ ...schema, _id: 'Many' });
    const title = 'x'.repeat(60_000);
    await shop
      .collection<Row>('Many')
      .insertMany(Array.from({ length: MANY }, (_, n) => ({ _id: `m${n}`, title, n })));
    service = await startOn(server.uri, fastReads);
  });
  afterAll(async () => {
    await service.stop();
    await client.close();
    await server.close();
  });
  const rows = (filter: Document) => client.db('shop').collection('Note').find(filter).toArray();
  const failCommand = (mode: unknown, data: Document) =>
    client.db('admin').command({ configureFailPoint: 'failCommand', mode, data });
  const create = (fields: object, more: object = {}) =>
    callTool(service, 'create_object', { class_name: 'Note', fields, ...more });

  describe('whose cursor is gone', () => {
    const gone = (mode: unknown) => failCommand(mode, { failCommands: ['getMore'], errorCode: 43 });
    it('in the middle of a query: an error, no half result, and the next call is answered', async () => {
      await gone('alwaysOn');
      const args = { class_name: 'Many', limit: MANY, keys: ['n'] };
      const answer = await callTool(service, 'query_class', { ...args, keys: ['title'] });
      await gone('off');
      expect(answer).toMatchObject({ isError: true, code: 'parse_error', data: {} });
      expect(answer.wire).not.toMatch(/cursor|43|failCommand|Mongo/i);
      expect(await callTool(service, 'query_class', args)).toMatchObject({ isError: false });
    });

    it('in the middle of an export: no file that looks whole, and it can be read again', async () => {
      const ordered = await callTool(service, 'export_data', { class_name: 'Many', delivery: 'resource' });
      const file = `${service.origin}${String(ordered.data['path'])}`;
      await gone('alwaysOn');
      const cut = await fetch(file);
      const text = await cut.text();
      await gone('off');
      expect([cut.status, JSON.parse(text)]).toEqual([
        503,
        { error: 'Parse error: the database could not complete the operation', error_code: 'parse_error' },
      ]);
      expect((await (await fetch(file)).text()).trim().split('\n')).toHaveLength(MANY + 1);
    });
  });

  it('that withdraws a right says so on the next call, and nothing more once it is granted again', async () => {
    const query = () => callTool(service, 'query_class', { class_name: 'Note', limit: 1 });
    const data = { failCommands: ['find', 'aggregate'], namespace: 'shop.Note', errorCode: 13 };
    await failCommand('alwaysOn', data);
    const refused = await query();
    await failCommand('off', data);
    expect(refused).toMatchObject({ isError: true, code: 'parse_error' });
    expect(refused.text).toContain('does not permit this to the service');
    expect(refused.wire).not.toMatch(/shop|not authorized|failCommand|Mongo/i);
    expect(await query()).toMatchObject({ isError: false });
  });

  it.each([
    ['that has forgotten the changes since its change stream broke off', 286],
    ['that withdraws the right to watch for a while', 13],
    ['whose change stream lost its cursor', 43],
  ])('%s tells a subscriber afterwards that something changed meanwhile', async (_, errorCode) => {
    const watcher = new Client({ name: 'scenario', version: '1.0.0' });
    let updates = 0;
    watcher.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void (updates += 1));
    await watcher.connect(new StreamableHTTPClientTransport(new URL(service.url)) as never);
    await watcher.subscribeResource({ uri: 'parse://Note/count' });
    const insert = () => client.db('shop').collection<Row>('Note').insertOne({ _id: randomUUID() });
    const furtherThan = (known: number) =>
      vi.waitFor(() => expect(updates).toBeGreaterThan(known), { timeout: 1_000, interval: 20 });
    try {
      // The listening stream of the client opens at some time after it has connected.
      await vi.waitFor(() => insert().then(() => furtherThan(updates)), SOON);
      await failCommand('alwaysOn', { failCommands: ['getMore', 'aggregate'], errorCode });
      // The look for changes that is under way still finds this one; those after it fail.
      const reported = updates;
      await insert();
      await vi.waitFor(() => expect(updates).toBeGreaterThan(reported), SOON);
      const missed = updates;
      await insert();
      await failCommand('off', {});
      await vi.waitFor(() => expect(updates).toBeGreaterThan(missed), SOON);
    } finally {
      await failCommand('off', {});
      await watcher.close();
    }
  });

  it('that steps down amid calls answers reads, and does no write twice', async () => {
    const answers = new Map<string, Awaited<ReturnType<typeof create>>>();
    // The rows of an attempt that failed stay where they are.
    const attempt = randomUUID();
    let running = true;
    const steps = (async () => {
      for (let round = 0; round < 3; round += 1) {
        await server.stepDown({ seconds: 1, closeConnections: round % 2 === 0 }).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 1_200));
      }
      running = false;
    })();
    let reads = 0;
    await Promise.all([
      ...['keyed', 'plain'].map(async (kind) => {
        for (let turn = 0; running; turn += 1) {
          const title = `${kind}-${turn}-${attempt}`;
          answers.set(title, await create({ title }, kind === 'keyed' ? { idempotency_key: title } : {}));
        }
      }),
      (async () => {
        while (running) {
          const { isError, code } = await callTool(service, 'query_class', { class_name: 'Note', limit: 1 });
          // A command that the driver sends just when the server closes its connection waits until the call is over.
          if (isError) expect(code).toBeOneOf(['parse_error', 'timeout']);
          else reads += 1;
        }
      })(),
      steps,
    ]);
    expect(reads).toBeGreaterThan(5);
    for (const [title, { isError, data, text }] of answers) {
      const stored = (await rows({ title })).length;
      const uncertain = isError && /Whether the write happened is not known/.test(text);
      expect([title, stored, data]).toEqual([
        title,
        uncertain ? expect.toBeOneOf([0, 1]) : isError ? 0 : 1,
        data,
      ]);
      if (!uncertain || !title.startsWith('keyed')) continue;
      // Repeated with its key it is there once.
      await create({ title }, { idempotency_key: title });
      expect((await rows({ title })).length).toBeLessThanOrEqual(1);
    }
  });

  it('that did not confirm a write says that it may be undone, and wrote it once', async () => {
    const writeConcernError = {
      code: 64,
      codeName: 'WriteConcernFailed',
      errmsg: 'waiting for replication timed out',
    };
    await failCommand({ times: 1 }, { failCommands: ['insert'], namespace: 'shop.Note', writeConcernError });
    const answer = await create({ title: 'unconfirmed' });
    expect(answer).toMatchObject({ isError: true, code: 'parse_error', details: { outcome: 'unknown' } });
    expect(answer.text).toContain('too few members of the replica set confirmed this write');
    expect(await rows({ title: 'unconfirmed' })).toHaveLength(1);
  });

  it('whose node hangs for a read lets others go on, and answers again afterwards', async () => {
    await failCommand(
      { times: 1 },
      {
        failCommands: ['find', 'aggregate'],
        namespace: 'shop.Note',
        blockConnection: true,
        blockTimeMS: 5_000,
      },
    );
    const answered: string[] = [];
    const find = async (name: string) => {
      const { isError } = await callTool(service, 'query_class', { class_name: 'Note', limit: 1 });
      answered.push(`${name}: ${isError ? 'failed' : 'found'}`);
    };
    const slow = find('the first');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await Promise.all([find('the second'), slow]);
    expect(answered).toEqual(['the second: found', 'the first: found']);
  });

  it('whose primary hangs answers a call with a clear error in time, and recovers', async () => {
    await server.pause();
    const answer = await callTool(service, 'query_class', { class_name: 'Note', limit: 1 });
    expect(answer).toMatchObject({ isError: true });
    expect(answer.text).toMatch(/does not answer|time/i);
    await server.resume();
    await expect
      .poll(async () => (await callTool(service, 'query_class', { class_name: 'Note', limit: 1 })).isError, {
        timeout: 30_000,
        interval: 300,
      })
      .toBe(false);
  });
});
