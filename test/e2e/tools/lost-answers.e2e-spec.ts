import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Db, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { type CuttingProxy, startCuttingProxy } from '../../support/cutting-proxy.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, type Service, startService, type ToolAnswer, WRITES_OPEN } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const PATIENT = { timeout: 30_000, interval: 200 };
const AGENTS = ['ann', 'bob'];
const folder = makeFolder('lost');
const config = (name: string, more: object = {}) => ({
  agents: Object.fromEntries(AGENTS.map((agent) => [agent, { permissions: 'admin', rateLimit: 1_000_000 }])),
  auth: AGENTS.map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  audit: { sinks: [{ kind: 'file', path: join(folder, `${name}.jsonl`) }] },
  policy: { unlistedClasses: 'allow', classes: { Note: {} } },
  ...more,
});
const schemas = [
  { _id: 'Note', objectId: 'string', createdAt: 'date', updatedAt: 'date', title: 'string', n: 'number' },
];

type Call = (tool: string, args: object, agent?: string) => Promise<ToolAnswer>;
const callerOf =
  (service: () => Service): Call =>
  (tool, args, agent = 'ann') =>
    callTool(service(), tool, { class_name: 'Note', ...args }, { 'X-MCP-API-Key': `key-of-${agent}` });

/** A writes call whose answer is lost, and what is said of it. */
const unknown = { isError: true, code: 'parse_error', details: { outcome: 'unknown' } };

let sequence = 0;
const newTitle = () => `title-${process.pid}-${++sequence}`;

function recordsOf(name: string): Record<string, unknown>[] {
  const text = readFileSync(join(folder, `${name}.jsonl`), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

interface Embedded {
  readonly port: number;
  readonly child: ChildProcess;
}
async function startEmbedded(file: string, port = 0): Promise<Embedded> {
  const cli = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));
  const args = [cli, 'embedded', '--port', String(port), '--data', file, '--fsync', 'always'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const text = await new Promise<string>((resolve, reject) => {
    let logged = '';
    child.stderr.on('data', (chunk: Buffer) => {
      logged += chunk.toString();
      if (/listening on mongodb\S+/.test(logged)) resolve(logged);
    });
    child.once('exit', () => reject(new Error(logged)));
  });
  return { port: Number(/:(\d+)\//.exec(text)?.[1]), child };
}

/**
 * What holds on every route.
 * @param takesIds a derived id makes a second creation impossible, and a time stamp shows whether an update was applied
 */
function writesOnce(title: string, takesIds: boolean, route: () => Route): void {
  describe(`${title}: a write whose answer was lost`, { timeout: 120_000 }, () => {
    const call: Call = (tool, args, agent) => route().call(tool, args, agent);
    const rows = (where: object) => route().db.collection('Note').find(where).toArray();
    const lost = async (tool: string, args: object, text: string): Promise<ToolAnswer> => {
      const cut = route().proxy.cut('after', text);
      const [answer] = await Promise.all([call(tool, args), cut]);
      route().proxy.heal();
      return answer;
    };
    const served = async () =>
      await expect.poll(async () => (await call('query_class', { limit: 1 })).isError, PATIENT).toBe(false);

    it('is said to be unknown, on the wire and in the record', async () => {
      const title = newTitle();
      const answer = await lost('create_object', { fields: { title } }, title);
      expect(answer).toMatchObject(unknown);
      expect(answer.text).toMatch(/not known: read the object before you try again/);
      expect(await rows({ title })).toHaveLength(1);
      await served();
      await expect
        .poll(() => recordsOf(route().name).filter(({ outcome }) => outcome === 'unknown'), PATIENT)
        .not.toEqual([]);
    });

    it('is never done twice when it is repeated with its key', async () => {
      const title = newTitle();
      const args = { fields: { title }, idempotency_key: `key:${title}` };
      expect(await lost('create_object', args, title)).toMatchObject(unknown);
      await served();
      const again = await call('create_object', args);
      if (takesIds) {
        expect(again).toMatchObject({ isError: false, data: { class_name: 'Note', object: { title } } });
        expect(again.data['object_id']).toBe((await rows({ title }))[0]?._id);
        expect(await call('create_object', args)).toMatchObject({ data: again.data });
      } else expect(again).toMatchObject(unknown);
      expect(await rows({ title })).toHaveLength(1);
    });

    /** An increment by ten of a row of its own, under a key. */
    const increment = async () => {
      const title = newTitle();
      const { data } = await call('create_object', { fields: { title, n: 1 } });
      const update = {
        object_id: String(data['object_id']),
        fields: { n: { __op: 'Increment', amount: 10 } },
        idempotency_key: title,
      };
      return { title, update, sent: takesIds ? '$inc' : 'Increment' };
    };

    it('is refused while its key cannot say what became of it, and done under another one', async () => {
      const { title, update, sent } = await increment();
      expect(await lost('update_object', update, sent)).toMatchObject(unknown);
      await served();
      if (takesIds)
        await route()
          .db.collection('Note')
          .updateOne({ title }, { $set: { _updated_at: new Date(Date.now() + 1) } });
      expect(await call('update_object', update)).toMatchObject(unknown);
      expect((await rows({ title }))[0]?.['n']).toBe(11);
      expect(await call('update_object', { ...update, idempotency_key: `${title}.2` })).toMatchObject({
        isError: false,
      });
      expect((await rows({ title }))[0]?.['n']).toBe(21);
    });
  });

  describe(`${title}: an update or a deletion whose answer was lost`, { timeout: 120_000 }, () => {
    const call: Call = (tool, args, agent) => route().call(tool, args, agent);
    const rows = (where: object) => route().db.collection('Note').find(where).toArray();
    const cut = async (when: 'after' | 'before', tool: string, args: object, text: string) => {
      const [answer] = await Promise.all([call(tool, args), route().proxy.cut(when, text)]);
      route().proxy.heal();
      expect(answer).toMatchObject(unknown);
      await expect.poll(async () => (await call('query_class', { limit: 1 })).isError, PATIENT).toBe(false);
    };
    const note = async () => {
      const title = newTitle();
      const { data } = await call('create_object', { fields: { title, n: 1 } });
      const object_id = String(data['object_id']);
      const fields = { n: { __op: 'Increment', amount: 10 } };
      return {
        title,
        update: { object_id, fields, idempotency_key: `${title}:u` },
        removal: { object_id, idempotency_key: `${title}:d` },
      };
    };
    const [increments, deletes] = takesIds ? ['$inc', 'deletes'] : ['Increment', 'DELETE /'];

    it.skipIf(!takesIds)('is an update that is found done, or done now: once', async () => {
      for (const when of ['after', 'before'] as const) {
        const { title, update } = await note();
        await cut(when, 'update_object', update, increments);
        expect((await rows({ title }))[0]?.['n']).toBe(when === 'after' ? 11 : 1);
        for (let turn = 0; turn < 2; turn += 1) {
          const again = await call('update_object', update);
          expect(again).toMatchObject({ isError: false, data: { object: { title, n: 11 } } });
          expect((await rows({ title }))[0]?.['n']).toBe(11);
        }
      }
    });

    it.skipIf(!takesIds)(
      'is not taken for the update of another key on a row whose stamp is ahead',
      async () => {
        const { title, update } = await note();
        const ahead = new Date(Date.now() + 3_600_000);
        await route()
          .db.collection('Note')
          .updateOne({ title }, { $set: { _updated_at: ahead } });
        await cut('before', 'update_object', update, increments);
        const other = { ...update, idempotency_key: `${title}:other` };
        expect(await call('update_object', other)).toMatchObject({ isError: false });
        expect(await call('update_object', update)).toMatchObject(unknown);
        expect((await rows({ title }))[0]?.['n']).toBe(11);
      },
    );

    it.skipIf(!takesIds)('is an update that many repeat at once, and one does', async () => {
      const { title, update } = await note();
      await cut('before', 'update_object', update, increments);
      const answers = await Promise.all(Array.from({ length: 8 }, () => call('update_object', update)));
      expect(answers.some(({ isError }) => !isError)).toBe(true);
      for (const answer of answers) if (answer.isError) expect(answer).toMatchObject(unknown);
      expect((await rows({ title }))[0]?.['n']).toBe(11);
      expect(await call('update_object', update)).toMatchObject({ isError: false });
      expect((await rows({ title }))[0]?.['n']).toBe(11);
    });

    it('is a deletion that is found done', async () => {
      const { title, removal } = await note();
      await cut('after', 'delete_object', removal, deletes);
      await expect.poll(() => rows({ title }), PATIENT).toEqual([]);
      for (let turn = 0; turn < 2; turn += 1)
        expect(await call('delete_object', removal)).toMatchObject({
          isError: false,
          data: { deleted: true },
        });
    });

    it('is a deletion that is done now, where nobody else may be at it', async () => {
      const { title, removal } = await note();
      await cut('before', 'delete_object', removal, deletes);
      const again = await call('delete_object', removal);
      if (takesIds) expect(again).toMatchObject({ isError: false, data: { deleted: true } });
      else expect(again).toMatchObject(unknown);
      expect(await rows({ title })).toHaveLength(takesIds ? 0 : 1);
    });

    it('never deletes a row that was made later under the same id', async () => {
      const { title, removal } = await note();
      await cut('after', 'delete_object', removal, deletes);
      await expect.poll(() => rows({ title }), PATIENT).toEqual([]);
      await route()
        .db.collection('Note')
        .insertOne({
          _id: removal.object_id as never,
          title,
          _created_at: new Date(),
          _updated_at: new Date(),
        });
      expect(await call('delete_object', removal)).toMatchObject({ isError: false });
      expect(await rows({ title })).toHaveLength(1);
    });
  });

  describe(`${title}: a key`, { timeout: 120_000 }, () => {
    const call: Call = (tool, args, agent) => route().call(tool, args, agent);
    const rows = (where: object) => route().db.collection('Note').find(where).toArray();

    it('stands for one write: many at once and later ones write nothing more', async () => {
      const title = newTitle();
      const args = { fields: { title }, idempotency_key: title };
      const answers = await Promise.all(Array.from({ length: 8 }, () => call('create_object', args)));
      expect(answers.some(({ isError }) => !isError)).toBe(true);
      for (const answer of answers) if (answer.isError) expect(answer).toMatchObject(unknown);
      expect(await rows({ title })).toHaveLength(1);
      const reordered = { idempotency_key: title, fields: { title } };
      const [id] = (await rows({ title })).map((row) => row._id as unknown as string);
      expect(await call('create_object', reordered)).toMatchObject({
        isError: false,
        data: { object_id: id },
      });

      const update = {
        object_id: id,
        fields: { n: { __op: 'Increment', amount: 1 } },
        idempotency_key: `${title}:n`,
      };
      for (let turn = 0; turn < 3; turn += 1)
        expect(await call('update_object', update)).toMatchObject({
          isError: false,
          data: { object: { n: 1 } },
        });
      const removal = { object_id: id, idempotency_key: `${title}:d` };
      for (let turn = 0; turn < 2; turn += 1)
        expect(await call('delete_object', removal)).toMatchObject({
          isError: false,
          data: { deleted: true },
        });
      expect(await rows({ title })).toEqual([]);
    });

    it('is refused for another write, another form, and is each principal’s own', async () => {
      const title = newTitle();
      const args = { fields: { title }, idempotency_key: title };
      const { data } = await call('create_object', args);
      for (const other of [
        call('create_object', { ...args, fields: { title, n: 1 } }),
        call('delete_object', { object_id: data['object_id'], idempotency_key: title }),
        call('update_object', { ...args, object_id: data['object_id'] }),
      ])
        expect(await other).toMatchObject({ isError: true, code: 'invalid_argument' });
      for (const key of ['', ' ', 'a b', 'x'.repeat(129), 7, {}, ['k'], '$k', 'é'])
        expect(await call('create_object', { ...args, idempotency_key: key })).toMatchObject({
          isError: true,
          code: 'invalid_argument',
        });
      const others = await call('create_object', args, 'bob');
      expect(others).toMatchObject({ isError: false });
      expect(others.data['object_id']).not.toBe(data['object_id']);
      expect(await rows({ title })).toHaveLength(2);
    });

    it('may be used again after a refusal: nothing was written', async () => {
      const title = newTitle();
      const id = 'nobodysId1';
      const update = { object_id: id, fields: { title }, idempotency_key: title };
      expect(await call('update_object', update)).toMatchObject({ isError: true });
      await route()
        .db.collection('Note')
        .insertOne({ _id: id as never, title: 'x', _updated_at: new Date() });
      expect(await call('update_object', update)).toMatchObject({ isError: false });
      await route()
        .db.collection('Note')
        .deleteOne({ _id: id as never });
    });
  });
}

interface Route {
  readonly name: string;
  readonly proxy: CuttingProxy;
  readonly db: Db;
  readonly call: Call;
}

describe('over MongoDB', () => {
  let embedded: Embedded;
  let proxy: CuttingProxy;
  let client: MongoClient;
  let service: Service;
  let redis: RedisServer;
  const file = join(folder, 'killed.data');
  const database = (port: number) => ({
    uri: `mongodb://127.0.0.1:${port}/?directConnection=true`,
    name: 'lost',
  });
  const connect = (port: number) => MongoClient.connect(`mongodb://127.0.0.1:${port}/?directConnection=true`);
  beforeAll(async () => {
    [embedded, redis] = await Promise.all([startEmbedded(file), startRedis()]);
    proxy = await startCuttingProxy(embedded.port);
    client = await connect(embedded.port);
    await client
      .db('lost')
      .collection('_SCHEMA')
      .insertMany(schemas as never);
    service = await startService({
      config: config('mongo', { database: database(proxy.port) }),
      env: { ...WRITES_OPEN, REDIS_URL: redis.url },
    });
  }, 120_000);
  afterAll(async () => {
    await service?.stop();
    await client?.close();
    await proxy?.close();
    embedded?.child.kill('SIGKILL');
    await redis?.stop();
  });

  writesOnce('MongoDB', true, () => ({
    name: 'mongo',
    proxy,
    db: client.db('lost'),
    call: callerOf(() => service),
  }));

  it('a write that could not be sent is not called unknown', async () => {
    const call = callerOf(() => service);
    const title = newTitle();
    await Promise.all([proxy.cut('before', title), call('create_object', { fields: { title } })]);
    const answer = await call('create_object', { fields: { title } });
    proxy.heal();
    expect(answer).toMatchObject({ isError: true, code: 'parse_error' });
    expect(answer.details).toBeUndefined();
    expect(await client.db('lost').collection('Note').countDocuments({ title })).toBe(0);
    await expect.poll(async () => (await call('query_class', { limit: 1 })).isError, PATIENT).toBe(false);
  }, 60_000);

  it('writes with keys, repeated at another replica after the database was killed amid them, are each there once', async () => {
    const other = await startService({
      config: config('replica', { database: database(proxy.port) }),
      env: { ...WRITES_OPEN, REDIS_URL: redis.url },
    });
    const call = callerOf(() => service);
    const direct = callerOf(() => other);
    const prefix = newTitle();
    const argsOf = (n: number) => ({
      fields: { title: `${prefix}/${n}` },
      idempotency_key: `${prefix}:${n}`,
    });
    let answered = 0;
    const calls = Array.from({ length: 120 }, async (_, n) => {
      const answer = await (n % 2 === 0 ? call : direct)('create_object', argsOf(n));
      if ((answered += 1) === 30) embedded.child.kill('SIGKILL');
      return answer;
    });
    const answers = await Promise.all(calls);
    const { port } = embedded;
    await client.close();
    embedded = await startEmbedded(file, port);
    client = await connect(port);
    const notes = client.db('lost').collection('Note');
    await expect.poll(async () => (await direct('query_class', { limit: 1 })).isError, PATIENT).toBe(false);

    const stored = new Set((await notes.find({}).toArray()).map(({ title }) => title as string));
    answers.forEach((answer, n) => {
      const there = stored.has(`${prefix}/${n}`);
      // Every answered write exists; a write that exists without an answer was reported as unknown.
      if (!answer.isError) expect(there, `answered ${n}`).toBe(true);
      else if (there) expect(answer.details).toMatchObject({ outcome: 'unknown' });
    });
    expect(answers.some(({ isError }) => isError)).toBe(true);
    for (const n of answers.keys())
      expect(await direct('create_object', argsOf(n)), `again ${n}`).toMatchObject({ isError: false });
    const titles = (await notes.find({ title: { $regex: `^${prefix}/` } }).toArray()).map(
      ({ title }) => title as string,
    );
    expect(titles).toHaveLength(answers.length);
    expect(new Set(titles).size).toBe(answers.length);
    await other.stop();
  }, 180_000);

  it('a write with a key is refused while keys are away, and nothing is written', async () => {
    await redis.stop();
    const call = callerOf(() => service);
    const title = newTitle();
    const answer = await call('create_object', { fields: { title }, idempotency_key: title });
    expect(answer.isError).toBe(true);
    expect(await client.db('lost').collection('Note').countDocuments({ title })).toBe(0);
  }, 60_000);
});

describe('over Parse Server', () => {
  let parse: ParseUnderTest;
  let proxy: CuttingProxy;
  let service: Service;
  beforeAll(async () => {
    parse = await ParseUnderTest.start();
    const url = new URL(parse.config.serverUrl as string);
    proxy = await startCuttingProxy(Number(url.port));
    url.port = String(proxy.port);
    await parse.fill({
      schemas: [{ className: 'Note', fields: { title: { type: 'String' }, n: { type: 'Number' } } }],
      users: [],
      roles: [],
      sessions: [],
      objects: {},
    } as never);
    service = await startService({
      config: config('parse', {
        parse: { ...parse.config, serverUrl: url.href },
        database: { uri: parse.databaseUri, name: parse.databaseName },
      }),
      env: WRITES_OPEN,
    });
  }, 120_000);
  afterAll(async () => {
    await service?.stop();
    await proxy?.close();
    await parse?.stop();
  });

  writesOnce('Parse Server', false, () => ({
    name: 'parse',
    proxy,
    db: parse.database.db as unknown as Db,
    call: callerOf(() => service),
  }));
});
