import type { IncomingMessage, ServerResponse } from 'node:http';
import { ProcessSessionStore, type SessionStore } from '#cluster';
import { faultLine, type Kernel, type WarningLog } from '#dispatcher';
import type { Authenticator } from '#auth';
import { discardBody } from './body-reader.js';
import { compileEdgeOptions, type EdgeSettings, type McpEdgeOptions } from './edge-options.js';
import { Exchange, pathOf } from './exchange.js';
import { LADDER } from './ladder.js';
import { internalErrorReply, type Reply } from './reply.js';
import type { EdgeParts, RungVerdict } from './rungs/rung.js';

export interface McpEdgeDependencies {
  readonly kernel: Kernel;
  readonly authenticator: Authenticator;
  /** Default: in this process's memory, which serves one replica only. */
  readonly sessions?: SessionStore;
  /** Default: nobody hears. */
  readonly log?: WarningLog;
}

const SILENT: WarningLog = { warn: () => undefined };

/** MCP over HTTP, on plain Node requests: whatever framework stands around it hands them over unread. */
export class McpEdge implements EdgeParts {
  readonly settings: EdgeSettings;
  readonly kernel: Kernel;
  readonly authenticator: Authenticator;
  readonly sessions: SessionStore;
  readonly log: WarningLog;
  accepting = true;

  private readonly running = new Set<Exchange>();
  private whenIdle: (() => void) | null = null;

  /** @throws TypeError naming the option that cannot be used */
  constructor(dependencies: McpEdgeDependencies, options: McpEdgeOptions = {}) {
    this.settings = compileEdgeOptions(options);
    this.kernel = dependencies.kernel;
    this.authenticator = dependencies.authenticator;
    this.sessions = dependencies.sessions ?? new ProcessSessionStore();
    this.log = dependencies.log ?? SILENT;
  }

  /** Whether a request target is this edge's to answer, if only with 404. */
  claims(url: string): boolean {
    const asked = pathOf(url);
    return (
      asked === this.settings.path ||
      asked.startsWith(`${this.settings.path}/`) ||
      asked === this.settings.healthPath
    );
  }

  /** Requests that have come in and are not answered yet. */
  get answering(): number {
    return this.running.size;
  }

  /** The host and origin checks alone, for neighbouring routes that tell something. */
  admits({
    host,
    origin,
  }: {
    readonly host?: string | undefined;
    readonly origin?: string | undefined;
  }): boolean {
    return this.settings.hosts.permits(host) && this.settings.origins.permits(origin);
  }

  /** Answers one request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = new Exchange(request, response);
    this.running.add(exchange);
    try {
      const verdict = await this.climb(exchange);
      if (verdict && verdict !== 'gone') send(exchange, verdict);
    } finally {
      this.running.delete(exchange);
      if (this.running.size === 0) this.whenIdle?.();
    }
  }

  /**
   * Refuses new requests, lets running ones finish, and aborts those that are still running after the grace period.
   * @param grace milliseconds. Default 5,000
   */
  async close(grace = 5_000): Promise<void> {
    this.accepting = false;
    if (this.running.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.whenIdle = resolve;
      timer = setTimeout(resolve, grace);
    });
    clearTimeout(timer);
    for (const exchange of this.running) exchange.abort('server_shutdown');
  }

  private async climb(exchange: Exchange): Promise<RungVerdict> {
    try {
      for (const rung of LADDER) {
        const verdict = rung.check(exchange, this);
        const settled = verdict instanceof Promise ? await verdict : verdict;
        if (settled) return settled;
      }
    } catch (fault) {
      this.log.warn(faultLine('[McpEdge]', fault));
    }
    return internalErrorReply(exchange.message.id);
  }
}

/** One write for the whole answer. */
function send({ request, response }: Exchange, { status, body, bytes, headers }: Reply): void {
  if (response.headersSent || response.destroyed) return;
  const fields = ['Content-Type', 'application/json'];
  if (status !== 204) fields.push('Content-Length', String(bytes));
  for (const name in headers) fields.push(name, headers[name] as string);
  response.writeHead(status, fields);
  response.end(body);
  discardBody(request);
}
