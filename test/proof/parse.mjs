// Parse Server is killed and started again under calls and LiveQuery subscriptions: what was written, and what was notified of it?
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { root, start } from '../bench/processes.mjs';
import { READY, startDatabase } from '../bench/works.mjs';
import { SeededRandom } from './support/seeded-random.mjs';

export const part = {
  title: 'Parse Server killed and started every few seconds under calls and LiveQuery subscriptions',
  minutes: 5,
  brief: 0.3,
};

const WRITERS = 3;
const SUBSCRIBERS = 3;
/** Milliseconds: no call takes longer than its tool may. */
const SLOWEST = 40_000;
/**
 * Milliseconds in which Parse Server was up, from a change to a notification behind it: connections pause for a minute after five
 * failures (docs/guide/subscriptions.md).
 */
const LONGEST_GAP = 90_000;
const NOTES = 'parse://Note/count';
const TOKEN = 'r:session-of-proof';

const SEED = {
  schemas: [{ className: 'Note', fields: { title: { type: 'String' }, n: { type: 'Number' } } }],
  users: [{ objectId: 'proof', username: 'proof' }],
  sessions: [{ sessionToken: TOKEN, user: 'proof', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {
    Note: Array.from({ length: WRITERS }, (_, at) => ({
      objectId: `counter${at}`,
      title: `counter${at}`,
      n: 0,
    })),
  },
};

export async function run({ minutes, seed, log, signal }) {
  for (const [needed, script] of [
    ['dist/bundle/main.js', 'build.mjs'],
    ['test/oracles/node_modules/parse-server', 'test-partners.mjs'],
  ])
    if (!existsSync(join(root, needed)))
      spawnSync(process.execPath, [join(root, 'tools', script)], { stdio: 'inherit' });
  const stage = new Stage(seed, log);
  try {
    await stage.open();
    await stage.strain(performance.now() + minutes * 60_000, signal);
    return await stage.judged();
  } finally {
    await stage.close();
  }
}

/** The answer in a body, which may be a stream with notifications before it. */
function messageIn(text) {
  if (text.startsWith('{')) return JSON.parse(text);
  const messages = [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, one]) => JSON.parse(one));
  return messages.find(({ id, result, error }) => id !== undefined && (result || error)) ?? {};
}

class Stage {
  folder = mkdtempSync(join(tmpdir(), 'parley-proof-parse-'));
  losses = [];
  notes = [];
  kills = 0;
  calls = { ok: 0, refused: 0, unknown: 0 };
  perSecond = new Map();
  slowest = 0;
  /**
   * Titles by what their creation was answered with.
   * @type {Record<'ok' | 'refused' | 'unknown', string[]>}
   */
  created = { ok: [], refused: [], unknown: [] };
  /** By writer: increments that were done, and those that may have been. */
  increments = Array.from({ length: WRITERS }, () => ({ ok: 0, unknown: 0 }));
  /** By subscriber: when it was notified. */
  notified = Array.from({ length: SUBSCRIBERS }, () => /** @type {number[]} */ ([]));
  /** When Parse Server was up. */
  up = [];
  began = performance.now();
  databaseUri = '';
  #streams = new AbortController();
  #id = 0;

  constructor(seed, log) {
    this.seed = seed;
    this.log = log;
    this.random = new SeededRandom(seed, 'parse');
  }

  async open() {
    writeFileSync(join(this.folder, 'seed.json'), JSON.stringify(SEED));
    this.database = await startDatabase({ seed: join(this.folder, 'seed.json'), clock: false });
    const uri = new URL(this.database.url);
    if (uri.pathname === '/' || uri.pathname === '') uri.pathname = '/parley';
    this.databaseUri = uri.toString();
    await this.startParse(0);
    const { parse } = this;
    const writer = { permissions: 'admin', rateLimit: 1_000_000_000 };
    const configuration = {
      server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, drainTimeout: 1 },
      database: { uri: this.databaseUri, name: uri.pathname.slice(1) },
      parse: {
        serverUrl: parse.url,
        liveQueryUrl: parse.liveQueryUrl,
        appId: parse.appId,
        masterKey: parse.masterKey,
        restApiKey: parse.restAPIKey,
      },
      subscriptions: { debounce: 0.05 },
      audit: { log: false },
      agents: { writer, session: { ...writer, identity: { session: 'caller' } } },
      auth: ['writer', 'session'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: { unlistedClasses: 'allow', suppressMasterKeyWarning: true, classes: { Note: {} } },
    };
    writeFileSync(join(this.folder, 'parley.yaml'), stringify(configuration));
    this.service = await start([join(root, 'dist', 'bundle', 'main.js')], {
      cwd: this.folder,
      env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
      ready: READY,
      clock: false,
    });
    this.url = this.service.url;
    for (let at = 0; at < SUBSCRIBERS; at += 1) await this.subscribe(at);
    // The streams are known to carry notifications once each has sent one.
    const until = performance.now() + 30_000;
    while (this.notified.some((times) => times.length === 0)) {
      if (performance.now() > until) throw new Error('a subscriber was notified of no change');
      await this.call('writer', 'create_object', { fields: { title: 'begin' } });
      await pause(300);
    }
    await pause(1_000);
    for (const times of this.notified) times.length = 0;
  }

  async startParse(port) {
    const options = {
      port,
      liveQueryClasses: ['Note'],
      liveQueryKeyPairs: { masterKey: 'oracle-master', restAPIKey: 'oracle-rest' },
    };
    const running = await start([join(root, 'test', 'oracles', 'parse-server.mjs')], {
      env: { MONGODB_URI: this.databaseUri, PARSE_OPTIONS: JSON.stringify(options) },
      ready: /^(\{.*"url".*\})\n/m,
      clock: false,
      // It ends with its input.
      stdin: 'pipe',
    });
    this.parse = { ...running, ...JSON.parse(running.url) };
    const interval = { from: Date.now(), to: Infinity };
    this.up.push(interval);
    void running.ended.then(() => (interval.to = Date.now()));
  }

  async post(agent, message, headers = {}) {
    /** @type {Record<string, string>} */
    const session = agent === 'session' ? { 'X-Parse-Session-Token': TOKEN } : {};
    return fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'X-MCP-API-Key': `key-of-${agent}`,
        ...session,
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: (this.#id += 1), ...message }),
      signal: AbortSignal.timeout(SLOWEST),
    });
  }

  async subscribe(at) {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'proof', version: '1' },
    };
    const opened = await this.post('session', { method: 'initialize', params });
    const headers = {
      'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '',
      'MCP-Protocol-Version': '2025-06-18',
    };
    await opened.text();
    const stream = await fetch(this.url, {
      headers: {
        accept: 'text/event-stream',
        'X-MCP-API-Key': 'key-of-session',
        'X-Parse-Session-Token': TOKEN,
        ...headers,
      },
      signal: this.#streams.signal,
    });
    void this.read(stream, at);
    const subscribing = { method: 'resources/subscribe', params: { uri: NOTES } };
    const answer = messageIn(await (await this.post('session', subscribing, headers)).text());
    if (answer.error) throw new Error(`a subscription was refused: ${answer.error.message}`);
  }

  async read(stream, at) {
    let text = '';
    try {
      for await (const chunk of stream.body) {
        const parts = (text + Buffer.from(chunk).toString('utf8')).split('\n\n');
        text = parts.pop() ?? '';
        for (const event of parts)
          if (event.includes('notifications/resources/updated')) this.notified[at].push(Date.now());
      }
    } catch (error) {
      if (!this.#streams.signal.aborted)
        this.losses.push(`the stream of subscriber ${at} broke: ${String(error)}`);
      return;
    }
    if (!this.#streams.signal.aborted) this.losses.push(`the stream of subscriber ${at} ended`);
  }

  /** @returns `ok`, `refused` or `unknown` */
  async call(agent, name, args) {
    const began = performance.now();
    const shown = (text) => /oracle-|127\.0\.0\.1|ECONN|undici|\bat .*:\d+:\d+/.test(text);
    let outcome;
    try {
      const answer = await this.post(agent, {
        method: 'tools/call',
        params: { name, arguments: { class_name: 'Note', ...args } },
      });
      const text = await answer.text();
      const { result, error } = messageIn(text);
      if (shown(text)) this.losses.push(`${name} shows something internal: ${text.slice(0, 300)}`);
      if (error)
        this.losses.push(
          `${name} was answered with a protocol error: ${JSON.stringify(error).slice(0, 300)}`,
        );
      const code = result?._meta?.['parse.error_code'];
      if (code === 'internal_error') this.losses.push(`${name} failed inside: ${text.slice(0, 300)}`);
      if (!result?.isError) outcome = 'ok';
      else outcome = result._meta?.['parse.details']?.outcome === 'unknown' ? 'unknown' : 'refused';
    } catch (error) {
      this.losses.push(`${name} was not answered: ${String(error)}`);
      outcome = 'unknown';
    }
    this.slowest = Math.max(this.slowest, performance.now() - began);
    this.calls[outcome] += 1;
    const second = Math.floor((performance.now() - this.began) / 1000);
    const counts = this.perSecond.get(second) ?? { ok: 0, refused: 0, unknown: 0 };
    counts[outcome] += 1;
    this.perSecond.set(second, counts);
    return outcome;
  }

  async strain(until, signal) {
    this.began = performance.now();
    const isOver = () => performance.now() > until || signal?.aborted;
    const write = async (at) => {
      for (let number = 0; !isOver(); number += 1) {
        const title = `made-${at}-${number}`;
        this.created[
          await this.call(at % 2 === 0 ? 'writer' : 'session', 'create_object', { fields: { title } })
        ].push(title);
        const done = await this.call('writer', 'update_object', {
          object_id: `counter${at}`,
          fields: { n: { __op: 'Increment', amount: 1 } },
        });
        if (done !== 'refused') this.increments[at][done] += 1;
        await pause(30);
      }
    };
    const read = async () => {
      while (!isOver()) {
        await this.call('session', 'query_class', { limit: 3, order: '-createdAt' });
        await pause(50);
      }
    };
    const kill = async () => {
      while (!isOver()) {
        await pause(2_000 + this.random.below(4_000));
        if (isOver()) break;
        await this.parse.stop(this.random.chance(0.7) ? 'SIGKILL' : 'SIGTERM');
        this.kills += 1;
        await pause(this.random.below(1_500));
        await this.startParse(Number(new URL(this.parse.url).port));
        if (this.kills % 10 === 0)
          this.log(`killed ${this.kills} times; calls: ${JSON.stringify(this.calls)}`);
      }
    };
    await Promise.all([...this.increments.map((_, at) => write(at)), read(), kill()]);
  }

  async judged() {
    const rows = await this.settled();
    const titles = new Map();
    for (const { title } of rows) titles.set(title, (titles.get(title) ?? 0) + 1);
    const count = (title) => titles.get(title) ?? 0;
    const twice = [...titles].filter(([title, times]) => title.startsWith('made-') && times > 1);
    for (const [title, times] of twice) this.losses.push(`${title} was made ${times} times`);
    for (const title of this.created.ok)
      if (count(title) === 0) this.losses.push(`${title} was answered as made and is not there`);
    for (const title of this.created.refused)
      if (count(title) > 0) this.losses.push(`${title} was refused without a doubt and is there`);
    this.increments.forEach(({ ok, unknown }, at) => {
      const n = rows.find(({ title }) => title === `counter${at}`)?.n ?? 0;
      if (n < ok || n > ok + unknown)
        this.losses.push(`counter${at} is ${n} after ${ok} increments and ${unknown} unknown ones`);
    });
    const longest = this.longestSilence(rows);
    await this.countedAlone();
    const updates = this.increments.reduce((sum, { ok, unknown }) => sum + ok + unknown, 0);
    const most = Math.max(...(this.notifiedDuring ?? []));
    // Each notification stands for at least one change, or for a reconnection.
    const reasons = titles.size + updates + 2 * this.kills + 1;
    if (most > reasons)
      this.losses.push(
        `a subscriber was notified ${most} times of at most ${reasons} changes and reconnections`,
      );
    const unknownThatWere = this.created.unknown.filter((title) => count(title) > 0).length;
    return {
      losses: this.losses,
      figures: [
        { name: 'kills of Parse Server', value: this.kills, unit: 'times', atLeast: 1 },
        ...Object.entries(this.calls).map(([outcome, value]) => ({
          name: `calls: ${outcome}`,
          value,
          unit: 'calls',
          ...(outcome === 'ok' && { atLeast: 1 }),
        })),
        { name: 'slowest call', value: Math.round(this.slowest), unit: 'ms', atMost: SLOWEST },
        { name: 'unknown creations that were made', value: unknownThatWere, unit: 'rows' },
        {
          name: 'longest time with Parse Server up from a change to a notification',
          value: Math.round(longest),
          unit: 'ms',
          atMost: LONGEST_GAP,
        },
        { name: 'notifications of a subscriber', value: most, unit: 'times', atLeast: 1 },
      ],
      series: [
        {
          title: 'Calls while Parse Server is killed',
          unit: '1/s',
          lines: ['ok', 'refused', 'unknown'].map((name) => ({
            name,
            points: [...this.perSecond]
              .sort(([a], [b]) => a - b)
              .map(([second, counts]) => [second, counts[name]]),
          })),
        },
      ],
      notes: [
        `Seed ${this.seed}. Every creation that is not known to have happened is there once or not at all.`,
      ],
    };
  }

  /** All rows, once Parse Server is back and all subscriptions are connected again. */
  async settled() {
    if (this.up.at(-1).to !== Infinity) await this.startParse(Number(new URL(this.parse.url).port));
    const until = performance.now() + 2 * LONGEST_GAP;
    const last = Date.now();
    // A change after all others: everyone is notified of it, at the latest with the reconnection.
    while (
      (await this.call('writer', 'create_object', { fields: { title: 'last' } })) !== 'ok' &&
      performance.now() < until
    )
      await pause(500);
    while (this.notified.some((times) => (times.at(-1) ?? 0) < last) && performance.now() < until)
      await pause(200);
    await pause(3_000);
    this.notifiedDuring = this.notified.map((times) => times.length);
    const { MongoClient } = await import('mongodb');
    const client = new MongoClient(this.databaseUri);
    try {
      return await client.db().collection('Note').find({}).toArray();
    } finally {
      await client.close();
    }
  }

  /** The longest time with the server up that a subscriber waited, from a change that was made to the next notification. */
  longestSilence(rows) {
    const changes = rows
      .flatMap(({ title, _created_at }) => (title.startsWith('made-') ? [Number(_created_at)] : []))
      .sort((a, b) => a - b);
    let longest = 0;
    this.notified.forEach((times, at) => {
      for (const change of changes) {
        // The clock of the database and ours are the same; a notification is never before its change.
        const next = times.find((time) => time >= change - 5);
        if (next === undefined) {
          this.losses.push(
            `subscriber ${at} was not notified after the change of ${new Date(change).toISOString()}`,
          );
          return;
        }
        longest = Math.max(longest, this.upWithin(change, next));
      }
    });
    return longest;
  }

  upWithin(from, to) {
    return this.up.reduce(
      (sum, one) => sum + Math.max(0, Math.min(to, one.to) - Math.max(from, one.from)),
      0,
    );
  }

  /** Without faults, each change by itself is notified once. */
  async countedAlone() {
    for (let turn = 0; turn < 3; turn += 1) {
      const before = this.notified.map((times) => times.length);
      if ((await this.call('writer', 'create_object', { fields: { title: `alone-${turn}` } })) !== 'ok') {
        this.losses.push('a creation failed although Parse Server is back');
        return;
      }
      await pause(1_500);
      this.notified.forEach((times, at) => {
        const more = times.length - before[at];
        if (more !== 1) this.losses.push(`subscriber ${at} was notified ${more} times of one change`);
      });
    }
  }

  async close() {
    this.#streams.abort();
    for (const running of [this.service, this.parse, this.database]) {
      if (!running) continue;
      const timer = setTimeout(() => running.signal('SIGKILL'), 5_000);
      await running.stop();
      clearTimeout(timer);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
