import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { ProcessSessionStore, type SessionStore } from '#cluster';
import { faultLine, type Kernel, type WarningLog } from '#dispatcher';
import type { Authenticator } from '#auth';
import { discardBody } from './body-reader.js';
import { compileEdgeOptions, type McpEdgeOptions } from './edge-options.js';
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

/** A log that fails must not fail the request. */
function harmless(log: WarningLog | undefined): WarningLog {
  return {
    warn: (line) => {
      try {
        log?.warn(line);
      } catch {
        // There is nobody else to tell.
      }
    },
  };
}

/** MCP over HTTP, on plain Node requests: whatever framework stands around it hands them over unread. */
export class McpEdge {
  private readonly parts: EdgeParts & { accepting: boolean };
  private readonly running = new Set<Exchange>();
  private whenIdle: (() => void) | null = null;

  /** @throws TypeError naming the option that cannot be used */
  constructor({ kernel, authenticator, sessions, log }: McpEdgeDependencies, options: McpEdgeOptions = {}) {
    this.parts = {
      settings: compileEdgeOptions(options),
      kernel,
      authenticator,
      sessions: sessions ?? new ProcessSessionStore(),
      log: harmless(log),
      accepting: true,
    };
  }

  /** Whether a request target is this edge's to answer, if only with 404. */
  claims(url: string): boolean {
    const asked = pathOf(url);
    const { path, healthPath } = this.parts.settings;
    return asked === path || asked.startsWith(`${path}/`) || asked === healthPath;
  }

  /** Requests that have come in and are not answered yet. */
  get answering(): number {
    return this.running.size;
  }

  /** The host and origin checks alone, for neighbouring routes that tell something. */
  admits({ host, origin }: Pick<IncomingHttpHeaders, 'host' | 'origin'>): boolean {
    const { hosts, origins } = this.parts.settings;
    return hosts.permits(host) && origins.permits(origin);
  }

  /** Answers one request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = new Exchange(request, response);
    this.running.add(exchange);
    try {
      const verdict = await this.climb(exchange);
      if (verdict && verdict !== 'gone') send(exchange, verdict);
    } catch (fault) {
      // An answer that cannot be sent, as with a challenge no header can carry: better none than half of one.
      this.parts.log.warn(faultLine('[McpEdge]', fault));
      response.destroy();
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
    this.parts.accepting = false;
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
        const verdict = rung.check(exchange, this.parts);
        const settled = verdict instanceof Promise ? await verdict : verdict;
        if (settled) return settled;
      }
    } catch (fault) {
      this.parts.log.warn(faultLine('[McpEdge]', fault));
    }
    return internalErrorReply(exchange.message.id);
  }
}

/** The whole answer leaves in one write: the response is corked until its end. */
function send({ request, response }: Exchange, { status, body, tail, headers }: Reply): void {
  if (response.headersSent || response.destroyed) return;
  const fields = ['Content-Type', 'application/json'];
  if (status !== 204) {
    fields.push('Content-Length', String(Buffer.byteLength(body) + (tail?.length ?? 0)));
  }
  for (const name in headers) fields.push(name, headers[name] as string);
  response.writeHead(status, fields);
  if (tail) {
    response.cork();
    response.write(body);
    response.end(tail);
  } else {
    response.end(body);
  }
  discardBody(request);
}
