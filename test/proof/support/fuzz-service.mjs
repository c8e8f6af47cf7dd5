import 'reflect-metadata';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parse, stringify } from 'yaml';
import { decideAll, deskOver, deskWithin } from './fuzz-approver.mjs';
import { SESSION_MARK } from './fuzz-frames.mjs';
import { SET_MARK } from './fuzz-inputs.mjs';

export const root = fileURLToPath(new URL('../../..', import.meta.url));
const built = (path) => import(pathToFileURL(join(root, 'dist', path)).href);

const KEYS = {
  reader: 'fuzz-key-of-reader',
  writer: 'fuzz-key-of-writer',
  proposer: 'fuzz-key-of-proposer',
  admin: 'fuzz-key-of-admin',
};
/** Decides what the others submit, and calls nothing. */
const APPROVER = ['chief', 'fuzz-key-of-chief'];
/** Stands in columns and rows that no agent may see: an answer that holds it shows too much. */
export const CANARY = 'zzCANARYzz';
const ROWS = 25;
const UNLIMITED = 1_000_000_000;

const GATES = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
  PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true',
};

/** Few rows of every class of the demo, with canaries where nobody may look. */
async function smallSeed() {
  const seed = JSON.parse(await readFile(join(root, 'demo', 'seed.json'), 'utf8'));
  for (const [className, rows] of Object.entries(seed.objects)) seed.objects[className] = rows.slice(0, ROWS);
  for (const row of seed.objects.Listing) row.internalNote = `${CANARY} note`;
  for (const row of seed.objects.SupplierContract) row.supplier = `${CANARY} supplier`;
  return seed;
}

async function configuration() {
  const base = parse(await readFile(join(root, 'parley.yaml'), 'utf8'));
  const agent = (permissions) => ({ permissions, tenantId: 'northside', rateLimit: UNLIMITED });
  return {
    ...base,
    server: {
      host: '127.0.0.1',
      port: 0,
      requestRateLimit: { limit: UNLIMITED, window: 60 },
      maxRunningCalls: null,
      drainTimeout: 1,
      startPage: false,
      stateKey: 'a key for the change sets of the fuzz',
    },
    database: { uri: 'embedded', seed: './seed.json' },
    audit: { log: false },
    changes: { undo: 'agents' },
    approvals: { mode: 'desk', approvers: ['chief'], expiry: 60 },
    agents: {
      reader: agent('readonly'),
      writer: { ...agent('write'), allowMutations: true },
      proposer: { ...agent('admin'), allowMutations: true, writes: 'proposed' },
      admin: { ...agent('admin'), allowMutations: true },
      chief: agent('admin'),
    },
    auth: [...Object.entries(KEYS), APPROVER].map(([name, apiKey]) => ({ apiKey, agent: name })),
  };
}

/** Keeps the last lines of the log: they name the cause of an internal error. */
class KeptLog {
  lines = [];
  #keep = (...texts) => {
    this.lines.push(texts.map(String).join(' ').slice(0, 1_500));
    if (this.lines.length > 30) this.lines.shift();
  };
  log = () => undefined;
  debug = () => undefined;
  verbose = () => undefined;
  warn = this.#keep;
  error = this.#keep;
  fatal = this.#keep;
}

/** One service over an embedded database: as it is served over HTTP, and its parts without a transport. */
export async function openFuzzService() {
  const { Logger } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const [
    { loadWithPlugins, openDatabase, ParleyInstance },
    { Kernel },
    { Agent, MASTER, McpRequest },
    { Authenticator },
    { ApprovalService },
    { StdioEdge, Wire },
    { startHttpService },
  ] = await Promise.all([
    built('libs/parley/src/instance/index.js'),
    built('libs/dispatcher/src/index.js'),
    built('libs/core/src/index.js'),
    built('libs/auth/src/index.js'),
    built('libs/approvals/src/index.js'),
    built('libs/streaming/src/index.js'),
    built('src/http-service.js'),
  ]);
  const folder = await mkdtemp(join(tmpdir(), 'parley-fuzz-'));
  const seed = await smallSeed();
  await writeFile(join(folder, 'seed.json'), JSON.stringify(seed));
  await writeFile(join(folder, 'parley.yaml'), stringify(await configuration()));
  const loaded = await loadWithPlugins(GATES, folder, { start: 'http' });
  const database = await openDatabase(loaded.config);
  const log = new KeptLog();
  const http = await startHttpService(loaded, database.connection, GATES);
  const instance = await ParleyInstance.open(
    { loaded, environment: GATES, connection: database.connection, plugins: [], queue: 'process' },
    (module) => NestFactory.createApplicationContext(module, { logger: false }),
  );
  await instance.begin();
  // After both have set theirs.
  Logger.overrideLogger(log);
  const { app } = instance;
  const kernel = app.get(Kernel);
  const agentOf = (name) =>
    new Agent({ definition: loaded.agents.get(name), identity: MASTER, principal: name });
  const agents = Object.fromEntries(Object.keys(KEYS).map((name) => [name, agentOf(name)]));
  const [chief, chiefKey] = APPROVER;
  const approvers = [
    deskOver(new URL(http.url).origin, { 'x-mcp-api-key': chiefKey }),
    deskWithin(app.get(ApprovalService), agentOf(chief)),
  ].map(decideAll);
  const conversations = [];
  const sets = { last: 'none', lastApplied: 'none', answers: 0, applied: 0, undone: 0 };
  /** What is known of change sets after an answer. */
  function note(tool, { result }) {
    const { change_set: set, applied } = result?.structuredContent ?? {};
    if (String(tool).endsWith('_changes') && result?.isError === false) sets.answers += 1;
    if (applied === true) sets[tool === 'undo_changes' ? 'undone' : 'applied'] += 1;
    if (applied === true && tool === 'submit_changes') sets.lastApplied = set;
    sets.last = set ?? sets.last;
  }
  return {
    seed,
    log,
    keys: Object.values(KEYS),
    agents: Object.keys(KEYS),
    port: Number(new URL(http.url).port),
    sessions: await openSessions(http.url),
    sets,
    dispatch: async (agent, method, params, version = '2025-11-25') => {
      const named = params?.arguments?.change_set === SET_MARK;
      const meant = params?.name === 'undo_changes' ? sets.lastApplied : sets.last;
      const reply = await kernel.dispatch(
        method,
        named ? { ...params, arguments: { ...params.arguments, change_set: meant } } : params,
        new McpRequest(agents[agent], {
          era: version >= '2026-07-28' ? 'modern' : 'legacy',
          version,
          signal: new AbortController().signal,
          correlationId: 'fuzz',
          requestId: 1,
        }),
      );
      note(params?.name, reply);
      return reply;
    },
    converse: () => {
      const conversation = new Conversation((input, output) => {
        const options = { credentials: { 'x-mcp-api-key': KEYS.writer }, input, output, log };
        return new StdioEdge(kernel, app.get(Authenticator), app.get(Wire), null, options);
      });
      conversations.push(conversation);
      return conversation;
    },
    close: async () => {
      for (const conversation of conversations) await conversation.end();
      for (const approver of approvers) await approver.end();
      await http.close();
      await instance.close();
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @returns by key, the id of a session in the revision that has batches */
async function openSessions(url) {
  const params = {
    protocolVersion: '2025-03-26',
    capabilities: {},
    clientInfo: { name: 'fuzz', version: '1' },
  };
  const sessions = new Map();
  for (const key of Object.values(KEYS)) {
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'X-MCP-API-Key': key,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
    });
    await answer.text();
    sessions.set(key, answer.headers.get('mcp-session-id'));
  }
  return sessions;
}

const NUMBER_AS_ID = /"id":(\d+)[,}]/;

/** A client on a pipe that knows when a line was dealt with: a ping that follows it has been answered. */
class Conversation {
  #input = new PassThrough();
  #output = new PassThrough();
  #text = '';
  #lines = [];
  /** @type {(value?: undefined) => void} */
  #arrived = () => undefined;
  #number = 0;
  /** @type {string[]} */
  #earlierIds = [];
  #running;

  constructor(open) {
    this.#output.setEncoding('utf8').on('data', (chunk) => {
      const parts = (this.#text + chunk).split('\n');
      this.#text = parts.pop() ?? '';
      this.#lines.push(...parts);
      this.#arrived();
    });
    this.#running = open(this.#input, this.#output).run();
  }

  /**
   * Sends a line. @param due whether it must be answered; null: either is right
   * @returns the lines that came back
   */
  async send(bytes, due, milliseconds) {
    const mark = `fuzz-ping-${(this.#number += 1)}`;
    const sent = bytes.toString('utf8');
    const earlierIds = this.#earlierIds;
    this.#earlierIds = [...earlierIds.slice(-20), NUMBER_AS_ID.exec(sent)?.[1] ?? ''];
    this.#lines = [];
    this.#input.write(bytes);
    this.#input.write(`\n{"jsonrpc":"2.0","id":"${mark}","method":"ping"}\n`);
    // A line that need not be answered may be answered after the ping behind it.
    const isLate = (line) => {
      const id = NUMBER_AS_ID.exec(line)?.[1];
      return id !== undefined && !sent.includes(id) && earlierIds.includes(id);
    };
    const isOther = (line) => line.includes(mark) || isLate(line);
    const done = () => {
      const answered = this.#lines.some(
        (line) => !isOther(line) && !line.includes('"method":"notifications/'),
      );
      return this.#lines.some((line) => line.includes(mark)) && (answered || due !== true);
    };
    const deadline = performance.now() + milliseconds;
    while (!done() && performance.now() < deadline) {
      let timer;
      await new Promise((/** @type {(value?: undefined) => void} */ resolve) => {
        this.#arrived = resolve;
        timer = setTimeout(resolve, deadline - performance.now());
      });
      clearTimeout(timer);
    }
    return { lines: this.#lines.filter((line) => !isOther(line)), complete: done() };
  }

  async end() {
    this.#input.end();
    await this.#running;
  }
}

/** An HTTP client that sends exactly the bytes it is given and reads one answer. */
export class RawClient {
  /** @type {import('node:net').Socket | null} */
  #socket = null;

  /** @param sessions ids by key */
  constructor(port, sessions) {
    this.port = port;
    this.sessions = sessions;
  }

  /** @returns `{ status, headers, body, open }`, or `{ closed: true }`, or `{ late: true }` */
  async send(frame, milliseconds) {
    const body = Buffer.from(frame.body, 'base64');
    const head = frame.framed ? this.#headOf(frame, body) : Buffer.from(frame.head, 'base64');
    const socket = await this.#open();
    const bytes = Buffer.concat([head, body]);
    if (frame.framed) socket.write(bytes);
    else socket.end(bytes);
    const answer = await readAnswer(socket, frame.verb, milliseconds);
    const reusable =
      frame.framed &&
      answer.status !== undefined &&
      // What was expected is refused without reading the body, which then stands before the next request.
      answer.status !== 417 &&
      !answer.open &&
      !/close/i.test(answer.headers.connection ?? '');
    if (!reusable) this.end();
    return answer;
  }

  #headOf({ verb, path, headers }, body) {
    const key = headers.find(([name]) => name === 'X-MCP-API-Key')?.[1];
    const session = this.sessions.get(key) ?? 'none';
    const lines = [
      `${verb} ${path} HTTP/1.1`,
      ...headers.map(([name, value]) => `${name}: ${value === SESSION_MARK ? session : value}`),
      `Content-Length: ${body.length}`,
    ];
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  }

  async #open() {
    if (this.#socket && !this.#socket.destroyed && this.#socket.writable && this.#socket.readable)
      return this.#socket;
    const socket = connect({ port: this.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    this.#socket = socket;
    await once(socket, 'connect');
    return socket;
  }

  end() {
    this.#socket?.destroy();
    this.#socket = null;
  }
}

function readAnswer(socket, verb, milliseconds) {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const finish = (answer) => {
      clearTimeout(timer);
      socket.off('data', take).off('close', closed).off('end', closed);
      resolve(answer);
    };
    const closed = () =>
      finish(completed(bytes, verb, true) ?? { closed: true, text: bytes.toString('latin1').slice(0, 300) });
    const take = (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      const answer = completed(bytes, verb, false);
      if (answer) finish(answer);
    };
    const timer = setTimeout(
      () => finish({ late: true, text: bytes.toString('latin1').slice(0, 300) }),
      milliseconds,
    );
    socket.on('data', take).on('close', closed).on('end', closed);
  });
}

/** The answer in these bytes; null while it is not complete. A stream counts once it has begun. */
function completed(bytes, verb, ended) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [first, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
  if (status === 100) return completed(bytes.subarray(end + 4), verb, ended);
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const rest = bytes.subarray(end + 4);
  if (verb === 'HEAD' || status === 204 || status === 304) return { status, headers, body: '' };
  const length = headers['content-length'];
  if (length !== undefined)
    return rest.length >= Number(length)
      ? { status, headers, body: rest.subarray(0, Number(length)).toString('utf8') }
      : null;
  const isStream = /event-stream/.test(headers['content-type'] ?? '');
  const over = ended || rest.subarray(-5).toString('latin1') === '0\r\n\r\n';
  if (over || (isStream && rest.includes('data:')))
    return { status, headers, body: rest.toString('utf8'), open: isStream && !over };
  return isStream && rest.length > 0 ? { status, headers, body: rest.toString('utf8'), open: true } : null;
}

/** What policy knows, for generators that must follow it. */
export async function policyOperators() {
  const { STAGE_NAMES } = await built('libs/policy/src/pipeline/stages.js');
  const { FILTER_OPERATORS, MATCH_OPERATORS, REFUSED_IN_FILTERS } = await built(
    'libs/policy/src/pipeline/operators.js',
  );
  return {
    stages: [...STAGE_NAMES],
    match: [...MATCH_OPERATORS],
    total: Object.keys(FILTER_OPERATORS),
    partial: Object.keys(REFUSED_IN_FILTERS),
  };
}

/** Loads configuration texts as a start and `parley policy check` do. */
export async function openConfigurations() {
  const { checkConfig, ConfigError } = await built('libs/config/src/index.js');
  const folder = await mkdtemp(join(tmpdir(), 'parley-fuzz-config-'));
  const { writeFileSync } = await import('node:fs');
  return {
    /** @returns null for a configuration without a mistake, else what was thrown */
    load: (text) => {
      writeFileSync(join(folder, 'parley.yaml'), text);
      try {
        checkConfig({ env: {}, cwd: folder, start: 'http', tools: new Set(['aggregate']) });
        return null;
      } catch (error) {
        return { error, isConfigError: error instanceof ConfigError };
      }
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}
