import { MongoClient } from 'mongodb';
import { readFileSync } from 'node:fs';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { SECRET } from '../../fixtures/posts.fixture.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const ROWS = 200_000;
const WAIT = { timeout: 60_000, interval: 100 };
const SESSION = 'r:the-session-of-ann';
const SEED = {
  schemas: [
    {
      className: 'Reading',
      fields: {
        sensor: { type: 'String' },
        value: { type: 'Number' },
        note: { type: 'String' },
        orgId: { type: 'String' },
        secret: { type: 'String' },
      },
    },
  ],
  users: [{ objectId: 'ann', username: 'ann' }],
  roles: [],
  sessions: [{ sessionToken: SESSION, user: 'ann', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {},
};
const policy = (fields: readonly string[] = ['sensor', 'value', 'note']) => ({
  classes: { Reading: { fields, tenantScope: { field: 'orgId' } } },
});
const agent = (tenantId = 'acme') => ({ permissions: 'readonly', tenantId, rateLimit: 1_000_000 });
const agents = {
  analyst: agent(),
  twin: agent(),
  foreign: agent('globex'),
  caller: { ...agent(), identity: { session: 'caller' } },
};
const auth = [
  { parseSession: true, agent: 'caller' },
  ...['analyst', 'twin', 'foreign'].map((name) => ({ apiKey: `key-of-${name}`, agent: name })),
];
const config = { agents, auth, policy: policy() };
const key = (name: string) => ({ 'X-MCP-API-Key': `key-of-${name}` });
const ANALYST = key('analyst');

let redis: RedisServer;
let database: Database;
let admin: MongoClient;
const services: Service[] = [];
async function start(changes: object = {}): Promise<Service> {
  const env = { REDIS_URL: redis.url, MONGODB_URI: database.uri };
  const service = await startService({ config: { ...config, ...changes }, env });
  services.push(service);
  return service;
}

const idOf = (index: number) => `r${String(index).padStart(8, '0')}`;
const noteOf = (index: number) => `note ${index}, "quoted" ${'x'.repeat(80)}`;

beforeAll(async () => {
  redis = await startRedis();
  database = await startDatabase(SEED);
  admin = await new MongoClient(database.uri).connect();
  const readings = admin.db('parley').collection<{ _id: string; [column: string]: unknown }>('Reading');
  const at = new Date('2025-01-01T00:00:00.000Z');
  const row = (index: number) => ({
    _id: idOf(index),
    _created_at: at,
    _updated_at: at,
    sensor: `s${index % 1000}`,
    value: index,
    note: noteOf(index),
    orgId: 'acme',
    secret: SECRET,
  });
  for (let from = 0; from < ROWS; from += 10_000)
    await readings.insertMany(Array.from({ length: 10_000 }, (_, index) => row(from + index)));
  await readings.insertMany([{ ...row(0), _id: 'r00000000x', note: SECRET, orgId: 'globex' }]);
}, 120_000);
afterAll(async () => {
  await Promise.all(services.filter((service) => service.isRunning()).map((service) => service.stop()));
  await admin?.close();
  await database?.stop();
  await redis?.stop();
});

const ENDING = { 'X-Parse-Session-Token': 'r:a-session-that-ends-soon' };
async function openSession(headers: typeof ENDING, expiresAt: Date): Promise<void> {
  const session = { _session_token: headers['X-Parse-Session-Token'], _p_user: '_User$ann', expiresAt };
  const sessions = admin.db('parley').collection<{ _id: string; [column: string]: unknown }>('_Session');
  await sessions.insertOne({ _id: 'soon', ...session });
}

interface Ticket {
  readonly uri: string;
  readonly path: string;
  readonly expires_at: string;
}

async function order(service: Service, args: object = {}, headers: Record<string, string> = ANALYST) {
  const asked = { class_name: 'Reading', delivery: 'resource', ...args };
  const answer = await callTool(service, 'export_data', asked, headers);
  expect(answer).toMatchObject({ isError: false });
  return answer.data as unknown as Ticket;
}

const fetchFrom = (
  service: Service,
  path: string,
  headers: Record<string, string> = ANALYST,
  method = 'GET',
) => fetch(service.origin + path, { method, headers });

/** A download that is read at the test's own pace. */
function slowly(service: Service, path: string, headers: Record<string, string> = ANALYST) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    httpGet(service.origin + path, { headers }, (response) => {
      response.pause();
      resolve(response);
    }).on('error', reject);
  });
}

/** @returns whether the whole file came */
function rest(response: IncomingMessage): Promise<{ whole: boolean; text: string }> {
  return new Promise((resolve) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => (text += chunk));
    response.on('close', () => resolve({ whole: response.complete, text }));
    response.on('error', () => undefined);
    response.resume();
  });
}

const batchesSent = async () => {
  const { opcounters } = await admin.db('admin').command({ serverStatus: 1 });
  return Number(opcounters.query);
};
const operations = async () => {
  const { inprog } = await admin.db('admin').command({ currentOp: 1 });
  const commands = (inprog as { command?: Record<string, unknown> }[]).map(({ command }) => command);
  return commands.filter((command) => command?.['find'] === 'Reading');
};
const memoryOf = (service: Service) => {
  const status = readFileSync(`/proc/${service.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
};
const readings = (service: Service) =>
  service
    .output()
    .stderr.split('\n')
    .filter((line) => line.includes('tool=export_read '));

interface Content {
  readonly uri: string;
  readonly mimeType: string;
  readonly text: string;
}
const read = async (service: Service, uri: string, headers: Record<string, string> = ANALYST) => {
  const { body, text } = await rpc(service, 'resources/read', { uri }, headers);
  const contents = (body['result'] as { contents?: Content[] } | undefined)?.contents;
  return { contents, error: body.error, wire: text };
};

describe('an export', () => {
  let one: Service;
  let two: Service;
  let readUntilItEnds: IncomingMessage;
  beforeAll(async () => {
    [one, two] = await Promise.all([start(), start()]);
    // Ends while the other tests run.
    await openSession(ENDING, new Date(Date.now() + 20_000));
    readUntilItEnds = await slowly(one, (await order(one, {}, ENDING)).path, ENDING);
  }, 120_000);

  it('of all rows comes whole from another replica, in memory that does not grow with it', async () => {
    const { path } = await order(one, { columns: ['objectId', 'value', 'note'] });
    await (await fetchFrom(two, (await order(two, { limit: 5000 })).path)).text();
    const before = memoryOf(two);
    const response = await slowly(two, path);
    expect(response.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="Reading.csv"',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    const { whole, text } = await rest(response);
    const grown = memoryOf(two) - before;
    expect(whole).toBe(true);
    const lines = text.split('\r\n');
    expect(lines).toHaveLength(ROWS + 2);
    expect(lines[0]).toBe('objectId,value,note');
    const wrong = lines.slice(1, -1).findIndex((line, index) => {
      const note = noteOf(index).replaceAll('"', '""');
      return line !== `${idOf(index)},${index},"${note}"`;
    });
    expect(wrong).toBe(-1);
    expect(text).not.toContain(SECRET);
    // The file alone has 30 MB; as rows it would be several times that.
    expect(grown).toBeLessThan(150);
  }, 120_000);

  it('has the very cells of an inline export of the same rows', async () => {
    const asked = { where: { sensor: 's7' }, columns: ['value', 'note'] };
    const inline = await callTool(
      one,
      'export_data',
      { class_name: 'Reading', ...asked, limit: 1000, order: 'objectId' },
      ANALYST,
    );
    const { path } = await order(one, asked);
    const file = await (await fetchFrom(two, path)).text();
    expect(file.replaceAll('\r\n', '\n')).toBe(inline.data['output']);
    expect(inline.data['row_count']).toBe(ROWS / 1000);
  });

  it('names and shows only what the agent may read, in every format', async () => {
    for (const format of ['csv', 'ndjson', 'markdown']) {
      const { path } = await order(one, { format, limit: 3 });
      const text = await (await fetchFrom(one, path)).text();
      expect(text).toContain('sensor');
      expect(text).not.toMatch(/secret|orgId|globex/i);
      expect(text.trimEnd().split('\n').length).toBe({ csv: 4, ndjson: 3, markdown: 5 }[format]);
    }
  });

  it('is not there for anybody else, under ids that never were, or with no credential', async () => {
    const { path, uri } = await order(one);
    const unknown = await fetchFrom(one, `/exports/${'a'.repeat(32)}`);
    const nothing = await unknown.text();
    expect(unknown.status).toBe(404);
    for (const headers of [key('twin'), key('foreign'), { 'X-Parse-Session-Token': SESSION }]) {
      for (const method of ['GET', 'DELETE']) {
        const response = await fetchFrom(two, path, headers, method);
        expect([response.status, await response.text()]).toEqual([404, nothing]);
      }
      expect((await read(two, uri, headers)).error).toMatchObject({ message: 'Resource not found' });
    }
    expect((await fetchFrom(one, path, {})).status).toBe(401);
    expect((await fetchFrom(one, path, { ...ANALYST, Host: 'evil.example' })).status).toBeOneOf([200, 403]);
    expect((await fetchFrom(one, path, ANALYST, 'POST')).status).toBe(405);
    for (const odd of ['/exports/', '/exports/..%2f', `/exports/${'a'.repeat(500)}`, '/exports/a/b'])
      expect((await fetchFrom(one, odd)).status).toBe(404);
  });

  it('is listed for its owner alone, and gone once it was taken back', async () => {
    const { path, uri } = await order(one);
    const listed = async (headers: Record<string, string>) =>
      (await rpc(two, 'resources/list', {}, headers)).text.includes(uri);
    expect([await listed(ANALYST), await listed(key('twin'))]).toEqual([true, false]);
    expect((await fetchFrom(two, path, ANALYST, 'DELETE')).status).toBe(204);
    expect((await fetchFrom(one, path)).status).toBe(404);
    expect(await listed(ANALYST)).toBe(false);
  });

  it('is read as a resource part by part, each of whole lines, on any replica', async () => {
    const { uri } = await order(one, { format: 'ndjson', where: { value: { $lt: 30_000 } } });
    let at: string | undefined = uri;
    let parts = 0;
    const values: number[] = [];
    while (at !== undefined) {
      const { contents, wire } = await read(parts % 2 === 0 ? two : one, at);
      expect(wire).not.toContain(SECRET);
      const [part, next] = contents ?? [];
      expect(Buffer.byteLength(part?.text ?? '')).toBeLessThanOrEqual(4_194_304);
      for (const line of part?.text.trimEnd().split('\n') ?? [])
        values.push((JSON.parse(line) as { value: number }).value);
      at = next?.text.trim();
      parts += 1;
    }
    expect(parts).toBeGreaterThan(1);
    expect(values).toEqual(Array.from({ length: 30_000 }, (_, index) => index));
  }, 120_000);

  it('refuses places that were tampered with, are of another export, or are somebody else’s', async () => {
    const args = { where: { value: { $lt: 30_000 } } };
    const [mine, other] = [await order(one, args), await order(one, args)];
    const next = (await read(one, mine.uri)).contents?.[1]?.text.trim() ?? '';
    expect(next).toContain(`${mine.uri}?after=`);
    const place = next.split('after=')[1] as string;
    const changed = (place.startsWith('A') ? 'B' : 'A') + place.slice(1);
    for (const uri of [
      `${mine.uri}?after=${changed}`,
      `${mine.uri}?after=r00000001`,
      `${other.uri}?after=${place}`,
    ])
      expect((await read(one, uri)).error).toMatchObject({ message: 'Resource not found' });
    expect((await read(one, next, key('twin'))).error).toMatchObject({ message: 'Resource not found' });
  });

  it('waits for a slow reader, and so does the database', async () => {
    const { path } = await order(one);
    const before = await batchesSent();
    const response = await slowly(one, path);
    let [earlier, now] = [-1, await batchesSent()];
    await vi.waitFor(
      async () => {
        [earlier, now] = [now, await batchesSent()];
        expect(now).toBe(earlier);
      },
      { timeout: 60_000, interval: 500 },
    );
    expect(now - before).toBeLessThan(ROWS / 1000 - 20);
    response.destroy();
  }, 120_000);

  it('ends in the database when its reader goes away, and says so in the audit', async () => {
    // One row is found at once; the rest of a batch is not found, after a slow search.
    const rare = [{ value: 0 }, ...['1', '2', '3'].map((end) => ({ note: { $regex: `xx*x*y${end}` } }))];
    const { path } = await order(one, { columns: ['objectId'], where: { $or: rare } });
    const reader = new AbortController();
    const gone = fetch(one.origin + path, {
      headers: { ...ANALYST, 'Mcp-Session-Id': 'export-17' },
      signal: reader.signal,
    }).catch(() => 'gone');
    await vi.waitFor(
      async () => {
        expect(await operations()).toMatchObject([{ comment: 'parley:export_data:export-17' }]);
      },
      { timeout: 60_000, interval: 10 },
    );
    reader.abort();
    expect(await gone).toBe('gone');
    await vi.waitFor(async () => expect(await operations()).toEqual([]), WAIT);
    await vi.waitFor(() => {
      const line = readings(one).find((entry) => entry.includes('export-17'));
      expect(line).toContain('outcome=refused code=cancelled');
    }, WAIT);
  }, 120_000);

  it('breaks off, visibly, when it is taken back while it is read', async () => {
    const { path } = await order(one);
    const response = await slowly(one, path);
    expect((await fetchFrom(two, path, ANALYST, 'DELETE')).status).toBe(204);
    const { whole, text } = await rest(response);
    expect(whole).toBe(false);
    expect(text.split('\r\n').length).toBeLessThan(ROWS);
  });

  it('breaks off when the database fails in the middle, and shows nothing of it', async () => {
    const { path } = await order(one);
    const response = await slowly(one, path);
    await admin.db('admin').command({
      configureFailPoint: 'failCommand',
      mode: { times: 1 },
      data: { failCommands: ['find'], errorCode: 8000 },
    });
    const { whole, text } = await rest(response);
    expect(whole).toBe(false);
    expect(text).not.toMatch(/8000|failCommand|Mongo/i);
  });

  it('breaks off when the session of its reader ends', async () => {
    await vi.waitFor(async () => {
      expect((await rpc(one, 'ping', {}, ENDING)).status).toBe(401);
    }, WAIT);
    expect((await rest(readUntilItEnds)).whole).toBe(false);
  }, 90_000);
});

describe('an export that is read later', () => {
  it('obeys the policy of that time', async () => {
    const wide = await start();
    const { path, uri } = await order(wide, { where: { sensor: 's7' } });
    const asked = await order(wide, { where: { note: { $exists: true } }, limit: 5 });
    expect(await (await fetchFrom(wide, path)).text()).toContain('quoted');
    await wide.stop();
    const narrow = await start({ policy: policy(['sensor', 'value']) });
    const text = await (await fetchFrom(narrow, path)).text();
    expect(text.split('\r\n')[0]?.split(',').toSorted()).toEqual(
      ['objectId', 'createdAt', 'updatedAt', 'sensor', 'value'].toSorted(),
    );
    expect(text).not.toContain('quoted');
    expect((await read(narrow, uri)).wire).not.toContain('quoted');
    const refused = await fetchFrom(narrow, asked.path);
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ error_code: 'access_denied' });
    await narrow.stop();
    const closed = await start({
      agents: { ...agents, analyst: { ...agent(), tools: { except: ['export_data'] } } },
    });
    expect((await fetchFrom(closed, path)).status).toBe(403);
    await closed.stop();
  }, 120_000);

  it('breaks off when a reload takes rights from its reader while it is read', async () => {
    const reloading = await start({ reload: { interval: 0.2 } });
    const adopt = async (changes: object) => {
      const versions = () => reloading.output().stderr.split(' is served, policy version').length;
      const before = versions();
      reloading.reconfigure({ ...config, reload: { interval: 0.2 }, ...changes });
      await vi.waitFor(() => expect(versions()).toBe(before + 1), WAIT);
    };
    for (const narrower of [
      { policy: policy(['sensor', 'value']) },
      { agents: { ...agents, analyst: { ...agent(), tools: { except: ['export_data'] } } } },
      { agents: { ...agents, analyst: agent('globex') } },
      { agents: { ...agents, analyst: { ...agent(), filters: { Reading: { sensor: 's1' } } } } },
    ]) {
      const { path } = await order(reloading);
      const response = await slowly(reloading, path);
      await adopt(narrower);
      const { whole, text } = await rest(response);
      expect(whole).toBe(false);
      expect(text.split('\r\n').length).toBeLessThan(ROWS);
      await adopt({});
    }
    await reloading.stop();
  }, 120_000);

  it('is gone when its time is over', async () => {
    const brief = await start({ exports: { lifetime: 2 } });
    const [first, second] = [await order(brief), await order(brief)];
    await vi.waitFor(async () => {
      expect((await fetchFrom(brief, `${first.path}`, ANALYST, 'DELETE')).status).toBe(404);
    }, WAIT);
    await vi.waitFor(async () => {
      const { status, body } = await fetchFrom(brief, second.path);
      await body?.cancel();
      expect(status).toBe(404);
    }, WAIT);
    await brief.stop();
  }, 120_000);

  it('with more rows than an export may have is broken off instead of cut', async () => {
    const small = await start({ exports: { maxRows: 2500 } });
    const { path } = await order(small);
    expect((await rest(await slowly(small, path))).whole).toBe(false);
    const limited = await order(small, { limit: 2500 });
    const { whole, text } = await rest(await slowly(small, limited.path));
    expect([whole, text.split('\r\n').length]).toEqual([true, 2502]);
    await small.stop();
  }, 120_000);
});
