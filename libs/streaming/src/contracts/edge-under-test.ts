import { createServer, type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Subject } from 'rxjs';
import { Agent, type CallContext, compileAgentShape, refusals, Unauthorized } from '#agent';
import { ProcessSessionStore, processState, type SharedState } from '#cluster';
import type { GovernedRecords } from '#data';
import { type DispatchContext, Kernel, PromptRegistry, RecordsSource } from '#dispatcher';
import { type ToolDefinition, type ToolOutcome, ToolRunner } from '#tools';
import { Authenticator, type CredentialSource } from '#auth';
import type { Downloads } from '../downloads/downloads.js';
import type { McpEdgeOptions } from '../edge-options.js';
import { McpEdge } from '../mcp-edge.js';
import type { AbandonedDispatch } from '../rungs/rung.js';
import type { ChangingList } from '../wire/replicated-list-changes.js';
import { Wire } from '../wire/wire.js';
import { type Frame, framesOf, messagesOf } from './event-frames.js';

const SHAPE = compileAgentShape('test');

/** `X-MCP-API-Key` names the caller; `wrong` is nobody, `broken` breaks the authenticator. */
class KeyAuthenticator extends Authenticator {
  override challenge: string | undefined = undefined;
  readonly seen: CredentialSource[] = [];

  override authenticate(request: CredentialSource): Promise<Agent> {
    this.seen.push(request);
    const key = request.headers['x-mcp-api-key'] ?? 'ada';
    if (key === 'wrong') return Promise.reject(new Unauthorized('no such key'));
    if (key === 'broken') return Promise.reject(new Error('the key store at db.internal is down'));
    return Promise.resolve(new Agent({ shape: SHAPE, principal: String(key) }));
  }
}

const tool = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: `Does ${name}`,
  category: 'query',
  permission: 'readonly',
  timeout: 30,
  clientSafe: false,
  inputSchema: { type: 'object', properties: {}, required: [] },
  ...more,
});

type Work = (context: DispatchContext, args: unknown) => unknown;

/** Tools that show what reached them: `echo` its arguments, `whoami` its context, `wait` when it is let go, `work` whatever a test says. */
class EdgeTools extends ToolRunner {
  readonly contexts: CallContext[] = [];
  /** What `work` does; its result is the data. */
  work: Work = () => ({});
  private readonly waiting: (() => void)[] = [];
  private readonly tools = [
    tool('echo', { outputSchema: { type: 'object' } }),
    tool('whoami'),
    tool('wait'),
    tool('work'),
    tool('regional', {
      inputSchema: {
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
        required: [],
      },
    }),
  ];

  list(): readonly ToolDefinition[] {
    return this.tools;
  }

  has(name: string): boolean {
    return this.tools.some((known) => known.name === name);
  }

  async run(name: string, args: unknown, context: CallContext): Promise<ToolOutcome> {
    this.contexts.push(context);
    if (!this.has(name)) return { ok: false, refusal: refusals.tierTooLow(name, 'unknown', 'readonly') };
    if (name === 'wait') await this.untilReleased(context.signal);
    const { agent, correlationId } = context;
    const whoami = { principal: agent.principal, correlationId };
    const data =
      name === 'work' ? await this.work(context as DispatchContext, args) : name === 'whoami' ? whoami : args;
    return { ok: true, data, text: JSON.stringify(data, null, 2), structured: name === 'echo' };
  }

  release(): void {
    for (const go of this.waiting.splice(0)) go();
  }

  private untilReleased(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

class NoRecords extends RecordsSource {
  for(): GovernedRecords {
    const none = () => Promise.resolve([]);
    const refused = () => Promise.reject(new Error('rows are not served here'));
    return {
      find: refused,
      page: refused,
      count: refused,
      get: refused,
      getMany: refused,
      samples: refused,
      aggregate: refused,
      checkAggregate: refused,
      indexes: refused,
      explain: refused,
      admit: refused,
      classes: none,
      describe: refused,
    };
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: () => Record<string, unknown>;
}

export interface Asked {
  readonly method?: string;
  readonly path?: string;
  /** Added to those of a well-formed legacy POST; `null` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | null>>;
  /** A value is sent as JSON, text and bytes as they are. */
  readonly body?: unknown;
}

/** An answer while it arrives. */
export interface Arriving {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: () => string;
  readonly frames: () => Frame[];
  readonly messages: () => Record<string, unknown>[];
  readonly isOver: () => boolean;
  /** Resolves when the server ended it or the connection broke. */
  readonly over: Promise<void>;
  /** Goes away without reading on. */
  readonly leave: () => void;
  /** Stops, and goes on, reading. */
  readonly pause: () => void;
  readonly resume: () => void;
}

export interface EdgeUnderTest {
  readonly edge: McpEdge;
  readonly kernel: Kernel;
  readonly wire: Wire;
  readonly tools: EdgeTools;
  readonly authenticator: KeyAuthenticator;
  readonly sessions: ProcessSessionStore;
  readonly warnings: string[];
  readonly url: string;
  readonly port: number;
  readonly ask: (asked?: Asked) => Promise<Answer>;
  /** Resolves with the headers, and shows the rest as it comes. */
  readonly open: (asked?: Asked) => Promise<Arriving>;
  readonly abandoned: AbandonedDispatch[];
  readonly listChanges: Subject<ChangingList>;
  readonly stop: () => Promise<void>;
}

function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** State in memory that several edges of one test share as replicas do. */
export function replicaState(): SharedState {
  return Object.assign(processState(), { reach: 'replicas' as const });
}

/** An edge on a real server at 127.0.0.1, and raw requests to it. */
export async function edgeUnderTest(
  options: McpEdgeOptions = {},
  state: SharedState = processState(),
  downloads?: Downloads,
): Promise<EdgeUnderTest> {
  const tools = new EdgeTools();
  const warnings: string[] = [];
  const log = { warn: (line: string) => void warnings.push(line) };
  const authenticator = new KeyAuthenticator();
  const sessions = state.sessions as ProcessSessionStore;
  const abandoned: AbandonedDispatch[] = [];
  const listChanges = new Subject<ChangingList>();
  const wire = new Wire({ state, log });
  wire.listChanges.follow(listChanges);
  const kernel = new Kernel({
    tools,
    records: new NoRecords(),
    prompts: new PromptRegistry(),
    listChanges: wire.listChanges,
    version: '1.2.3',
    log,
  });
  const onAbandoned = (dispatch: AbandonedDispatch) => void abandoned.push(dispatch);
  const given = { kernel, authenticator, sessions, wire, onAbandoned, log, ...(downloads && { downloads }) };
  const edge = new McpEdge(given, options);
  const server = createServer((request, response) => void edge.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  const open = ({ method = 'POST', path = '/mcp', headers = {}, body }: Asked = {}) =>
    new Promise<Arriving>((resolve, reject) => {
      const bytes = body === undefined ? undefined : bytesOf(body);
      const all: Record<string, string | readonly string[] | null> = {
        ...(bytes && { 'Content-Type': 'application/json', 'Content-Length': String(bytes.length) }),
        ...headers,
      };
      const sent = Object.entries(all).filter(([, value]) => value !== null) as [string, string | string[]][];
      const request = httpRequest(
        { host: '127.0.0.1', port, method, path, headers: Object.fromEntries(sent), agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          const text = () => Buffer.concat(chunks).toString('utf8');
          let isOver = false;
          const over = new Promise<void>((end) => {
            const ended = () => {
              isOver = true;
              end();
            };
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', ended).on('end', ended).on('close', ended);
          });
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            frames: () => framesOf(text()),
            messages: () => messagesOf(framesOf(text())),
            isOver: () => isOver,
            over,
            leave: () => void request.destroy(),
            pause: () => void response.pause(),
            resume: () => void response.resume(),
          });
        },
      );
      request.on('error', reject);
      request.end(bytes);
    });

  const ask = async (asked?: Asked): Promise<Answer> => {
    const { status, headers, over, text } = await open(asked);
    await over;
    return { status, headers, text: text(), json: () => JSON.parse(text()) as Record<string, unknown> };
  };

  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });

  return {
    edge,
    kernel,
    wire,
    tools,
    authenticator,
    sessions,
    warnings,
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    ask,
    open,
    abandoned,
    listChanges,
    stop,
  };
}

export const ping = (id: unknown = 1) => ({ jsonrpc: '2.0', id, method: 'ping' });

export const initialize = (protocolVersion = '2025-06-18') => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion, capabilities: { roots: {} }, clientInfo: { name: 'test', version: '1' } },
});

export const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A well-formed request of the stateless era. */
export function modern(method: string, params: object = {}, headers: Asked['headers'] = {}): Asked {
  const named = (params as { name?: unknown; uri?: unknown }).name ?? (params as { uri?: unknown }).uri;
  return {
    headers: {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(typeof named === 'string' && { 'Mcp-Name': named }),
      ...headers,
    },
    body: { jsonrpc: '2.0', id: 7, method, params: { _meta: MODERN_META, ...params } },
  };
}
