import { createServer, type IncomingHttpHeaders, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { Subject } from 'rxjs';
import { LargeReads, ProcessSessionStore, processState, type SharedState, SuspendedAgents } from '#state';
import type { Kernel, WarningLog } from '#dispatcher';
import { kernelOf, SmallRecords } from '#dispatcher/contracts';
import {
  type AbandonedDispatch,
  type Downloads,
  EdgeDependencies,
  EdgeSettings,
  type McpEdgeOptions,
} from '../http/edge-dependencies.js';
import { DOWNLOADS } from '../http/downloads.js';
import { McpEdge } from '../http/mcp-edge.js';
import { PendingClientRequests } from '../sessions/client-requests.js';
import { type ChangingList, ListeningStreams, ReplicatedListChanges } from '../sessions/listening-streams.js';
import { ReplicaSignals } from '../sessions/replica-signals.js';
import { Wire } from '../sessions/wire.js';
import { Resumption } from '../sse/resumable-stream.js';
import { EdgeTools, KeyAuthenticator, NoFiles } from './edge-dependencies.fixture.js';
import { type Frame, parseFrames, listMessages } from './event-frames.js';

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
  /** Disconnects without reading on. */
  readonly leave: () => void;
  /** Pauses and resumes reading. */
  readonly pause: () => void;
  readonly resume: () => void;
}

export interface EdgeUnderTest {
  readonly edge: McpEdge;
  readonly server: Server;
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

function toBytes(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** State in memory that several edges of one test share as replicas do. */
export function replicaState(): SharedState {
  return Object.assign(processState(), { reach: 'replicas' as const });
}

/** The signals of one replica over a shared state. */
function createWire(state: SharedState, log: WarningLog): Wire {
  const signals = new ReplicaSignals(state.bus, log);
  const listening = new ListeningStreams(signals, state);
  const clientRequests = new PendingClientRequests(state.oneTime, signals, listening);
  const listChanges = new ReplicatedListChanges(signals, listening);
  const resumption = new Resumption(state.streams, signals, new LargeReads(), { digestRights: () => '' });
  return new Wire(signals, listening, clientRequests, listChanges, resumption, new SuspendedAgents(state));
}

/** An edge on a real server at 127.0.0.1, and raw requests to it. */
export async function edgeUnderTest(
  options: McpEdgeOptions = {},
  state: SharedState = processState(),
  downloads: Downloads = new NoFiles(),
): Promise<EdgeUnderTest> {
  const tools = new EdgeTools();
  const warnings: string[] = [];
  const log = { warn: (line: string) => void warnings.push(line) };
  const authenticator = new KeyAuthenticator();
  const sessions = state.sessions as ProcessSessionStore;
  const abandoned: AbandonedDispatch[] = [];
  const listChanges = new Subject<ChangingList>();
  const wire = createWire(state, log);
  wire.listChanges.announce(listChanges);
  const kernel = kernelOf(
    { version: '1.2.3', log },
    { tools, records: new SmallRecords({}), listChanges: wire.listChanges },
  );
  const events = new EventEmitter2();
  events.on('parse.agent.mcp_dispatcher_abandoned', (dispatch: AbandonedDispatch) =>
    abandoned.push(dispatch),
  );
  const settings = new EdgeSettings(options);
  const edge = new McpEdge(
    new EdgeDependencies(settings, kernel, authenticator, sessions, wire, events, null, downloads, log),
  );
  const server = createServer((request, response) => {
    const isFile = request.url?.startsWith(DOWNLOADS) && !(downloads instanceof NoFiles);
    void (isFile ? edge.serveFile(request, response) : edge.handle(request, response));
  });
  // As the service does. Otherwise Node refuses a request whose `Host` it has dropped.
  server.maxHeadersCount = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  const open = ({ method = 'POST', path = '/mcp', headers = {}, body }: Asked = {}) =>
    new Promise<Arriving>((resolve, reject) => {
      const bytes = body === undefined ? undefined : toBytes(body);
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
            const markOver = () => {
              isOver = true;
              end();
            };
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', markOver).on('end', markOver).on('close', markOver);
          });
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            frames: () => parseFrames(text()),
            messages: () => listMessages(parseFrames(text())),
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
    server,
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
