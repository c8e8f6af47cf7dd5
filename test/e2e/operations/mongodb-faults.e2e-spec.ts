import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { type Document, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { callTool, type Service, startService } from '../../support/service.js';
import { runCommand } from '../../support/terminal.js';

const SECRET = 's3cretWord';
const OPEN = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
const settings = {
  agents: { default: { permissions: 'admin', rateLimit: 1_000_000 } },
  policy: { classes: { Note: {} } },
};
const schema: Document = {
  _id: 'Note',
  objectId: 'string',
  createdAt: 'date',
  updatedAt: 'date',
  title: 'string',
  n: 'number',
};

const folder = mkdtempSync(join(tmpdir(), 'parley-faults-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function prepare(uri: string, options = {}): Promise<MongoClient> {
  const client = await MongoClient.connect(uri, options);
  await client.db('shop').collection('_SCHEMA').insertOne(schema);
  await client
    .db('shop')
    .collection<{ _id: string }>('Note')
    .insertOne({ _id: 'first', title: 'first', n: 0 } as { _id: string });
  return client;
}

const startOn = (uri: string): Promise<Service> =>
  startService({ config: { ...settings, database: { uri, name: 'shop' } }, env: OPEN });

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

  it('with a wrong password, or without a right, is told so in one line by every command', async () => {
    const wrong = uriOf('reader', `${SECRET}-wrong`);
    const doctor = await command(wrong, 'doctor');
    expect(doctor.code).toBe(1);
    expect(doctor.text).toMatch(
      /^fail {2}mongodb +it refuses the user or the password \(failed\)\n +-> check user/m,
    );
    expect((await command(wrong, 'policy', 'check')).text).toMatch(
      /warning database: .*refuses the user or the password/,
    );
    const init = await command(wrong, 'init', '--uri', wrong, '--out', '-');
    expect(init).toMatchObject({ code: 1 });
    expect(init.stderr).toMatch(
      /^the database could not be read \(failed\): it refuses the user or the password; check .*\n$/,
    );
    const none = await command(uriOf('nobody'), 'init', '--uri', uriOf('nobody'), '--out', '-');
    expect(none.stderr).toMatch(/^the database could not be read \(failed\): .*lacks a right; grant .*\n$/);
  });
});

describe('a database that does not answer', () => {
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

describe('a replica set', { timeout: 120_000 }, () => {
  let server: EmbeddedMongo;
  let client: MongoClient;
  let service: Service;
  beforeAll(async () => {
    server = await EmbeddedMongo.start({ members: 2 });
    client = await prepare(server.uri);
    service = await startOn(server.uri);
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

  it('that steps down amid calls answers reads, and does no write twice', async () => {
    const answers = new Map<string, Awaited<ReturnType<typeof create>>>();
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
          const title = `${kind}-${turn}`;
          answers.set(title, await create({ title }, kind === 'keyed' ? { idempotency_key: title } : {}));
        }
      }),
      (async () => {
        while (running) {
          const { isError, code } = await callTool(service, 'query_class', { class_name: 'Note', limit: 1 });
          if (isError) expect(code).toBe('parse_error');
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
        blockTimeMS: 3_000,
      },
    );
    const slow = callTool(service, 'query_class', { class_name: 'Note', limit: 1 });
    await new Promise((resolve) => setTimeout(resolve, 300));
    const begun = Date.now();
    expect(await callTool(service, 'query_class', { class_name: 'Note', limit: 1 })).toMatchObject({
      isError: false,
    });
    expect(Date.now() - begun).toBeLessThan(2_500);
    expect((await slow).isError).toBe(false);
  });

  it('whose primary hangs answers a call with a clear error in time, and recovers', async () => {
    await server.pause();
    const answer = await callTool(service, 'query_class', { class_name: 'Note', limit: 1 });
    expect(answer).toMatchObject({ isError: true });
    expect(answer.text).toMatch(/unavailable|time/i);
    await server.resume();
    await expect
      .poll(async () => (await callTool(service, 'query_class', { class_name: 'Note', limit: 1 })).isError, {
        timeout: 30_000,
        interval: 300,
      })
      .toBe(false);
  });
});
