import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Agent } from '#agent';
import type { Authenticator } from '#auth';
import { ProcessSessionStore, type SessionNotice, type SessionStore, SharedStateUnavailable } from '#cluster';
import { faultLine, type Kernel, type WarningLog } from '#dispatcher';
import type { Telemetry } from '#telemetry';
import { processWire, type Wire } from '../sessions/wire.js';
import { KeepAlives } from '../sse/event-stream.js';
import { OpenStreams } from '../sse/open-streams.js';
import { authenticate, spendRequest } from './caller-checks.js';
import { dispatch } from './dispatch.js';
import { DOWNLOAD_LADDER, DOWNLOADS } from './downloads.js';
import { type AbandonedDispatch, type Downloads, EdgeCounts, type EdgeParts } from './edge-dependencies.js';
import { compileEdgeOptions, type McpEdgeOptions } from './edge-options.js';
import { Exchange, pathOf, type Rung, type RungVerdict } from './http-exchange.js';
import { internalError, stateUnavailable } from './refusals.js';
import { sendWhole } from './reply.js';
import { PendingBodies } from './request-body.js';
import { LADDER, NEIGHBOUR_LADDER } from './request-checks.js';
import { type NotServed, notServed } from './routes.js';
import { UnreadAnswers } from './unread-answers.js';

export interface McpEdgeDependencies {
  readonly kernel: Kernel;
  readonly authenticator: Authenticator;
  /** Default: in this process's memory, which serves one replica only. */
  readonly sessions?: SessionStore;
  /** Default: one that serves this process only. */
  readonly wire?: Wire;
  /** Files that are served beside MCP, under `/exports/`. Default: none. */
  readonly downloads?: Downloads;
  /** Hears of every client that left before its answer. Default: nobody hears. */
  readonly onAbandoned?: (dispatch: AbandonedDispatch) => void;
  /** Default: nothing is measured. */
  readonly telemetry?: Telemetry | undefined;
  /** Default: nobody hears. */
  readonly log?: WarningLog;
}

/** Milliseconds that aborted calls have to say so to their clients. */
const FAREWELL = 1_000;

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

/** What a call came to is told with the call; any other answer is the refusal of a check. */
function answered(verdict: RungVerdict, rung: Rung, { observed }: Exchange): RungVerdict {
  if (
    observed &&
    rung !== dispatch &&
    verdict !== null &&
    typeof verdict === 'object' &&
    verdict.status >= 400
  )
    observed.refused(rung.name);
  return verdict;
}

/** MCP over HTTP, on plain Node requests: whatever framework stands around it hands them over unread. */
export class McpEdge {
  private readonly parts: EdgeParts & { accepting: boolean };
  private readonly running = new Set<Exchange>();
  private whenIdle: (() => void) | null = null;

  /** @throws TypeError naming the option that cannot be used */
  constructor(given: McpEdgeDependencies, options: McpEdgeOptions = {}) {
    const { kernel, authenticator, sessions, wire, downloads, onAbandoned, telemetry } = given;
    const log = harmless(given.log);
    const settings = compileEdgeOptions(options);
    if (settings.maxConcurrentDispatchers === null)
      log.warn('[McpEdge] maxConcurrentDispatchers is null: nothing bounds how many streams are open');
    this.parts = {
      settings,
      kernel,
      authenticator,
      sessions: sessions ?? new ProcessSessionStore(),
      wire: wire ?? processWire(log),
      keepAlives: new KeepAlives(settings.heartbeatInterval),
      counts: new EdgeCounts(),
      openStreams: new OpenStreams({ authenticator, interval: settings.credentialsInterval, log }),
      pendingBodies: new PendingBodies(),
      unread: new UnreadAnswers({ patience: settings.readerPatience, perCaller: settings.maxUnread }),
      downloads,
      onAbandoned: onAbandoned ?? (() => undefined),
      telemetry,
      log,
      accepting: true,
    };
  }

  /** Streamed answers that are being worked on, those whose client left included. */
  get activeDispatcherCount(): number {
    return this.parts.counts.dispatchers;
  }

  /** Streams that stay open by themselves. */
  get activeListeningStreamCount(): number {
    return this.parts.counts.listeningStreams;
  }

  /** Calls that still ran when their client left, since the start. */
  get abandonedDispatcherCount(): number {
    return this.parts.counts.abandonedDispatchers;
  }

  /**
   * Sends a notification to the listening stream of a session, on whichever replica that is.
   * @returns whether a stream took it. @throws TypeError for an empty method
   */
  notify(session: string, notice: SessionNotice): Promise<boolean> {
    return this.parts.wire.listening.notify(session, notice);
  }

  /** Whether a request target is this edge's to answer, if only with 404. */
  claims(url: string): boolean {
    const asked = pathOf(url);
    const { path, healthPath } = this.parts.settings;
    return (
      asked === path ||
      asked.startsWith(`${path}/`) ||
      asked === healthPath ||
      (this.parts.downloads !== undefined && asked.startsWith(DOWNLOADS))
    );
  }

  /** Answers of this process that wait for their readers: routes beside MCP count theirs here as well. */
  get unread(): UnreadAnswers {
    return this.parts.unread;
  }

  /** False from the moment it begins to close. */
  get isAccepting(): boolean {
    return this.parts.accepting;
  }

  /** Requests that have come in and are not answered yet. */
  get answering(): number {
    return this.running.size;
  }

  /**
   * What stands before authentication, for neighbouring routes that tell something: host, limit, origin.
   * @returns the refusal, or null to let the request pass
   */
  async refusalFor(request: IncomingMessage, response: ServerResponse): Promise<NotServed | null> {
    const exchange = new Exchange(request, response, this.parts);
    for (const rung of NEIGHBOUR_LADDER) {
      const verdict = await rung.check(exchange);
      if (verdict !== null && typeof verdict === 'object') return notServed(verdict.status, verdict.headers);
    }
    return null;
  }

  /**
   * Counts a request to a route beside MCP against the limit of its principal.
   * @returns seconds to wait, or null to let it pass. @throws SharedStateUnavailable
   */
  spendRequest(principal: string): Promise<number | null> {
    return spendRequest(this.parts, principal);
  }

  /** Answers one request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.parts.unread.watch(request);
    const exchange = new Exchange(request, response, this.parts);
    this.running.add(exchange);
    this.observe(exchange);
    try {
      const verdict = await this.climb(exchange);
      if (verdict !== 'streamed' && verdict && verdict !== 'gone') sendWhole(exchange, verdict);
      this.parts.unread.wrote(response);
      if (verdict === 'streamed') await this.flushed(exchange);
    } catch (fault) {
      // An answer that cannot be sent, as with a challenge no header can carry: better none than half of one.
      this.parts.log.warn(faultLine('[McpEdge]', fault));
      response.destroy();
    } finally {
      exchange.observed?.ends(exchange.isGone ? null : response.statusCode);
      this.running.delete(exchange);
      if (this.running.size === 0) this.whenIdle?.();
    }
  }

  /**
   * Refuses new requests, ends open streams with a last word, lets running calls finish, and aborts those that are still
   * running after the grace period.
   * @param grace milliseconds. Default 5,000
   */
  async close(grace = 5_000): Promise<void> {
    this.parts.accepting = false;
    this.parts.openStreams.shutDown(({ finite }) => !finite);
    await this.idleWithin(grace);
    this.parts.openStreams.shutDown(() => true);
    this.parts.wire.calls.endAll('server_shutdown');
    await this.idleWithin(FAREWELL);
  }

  /**
   * Ends the streams that stay open for these agents: their clients come back and are authenticated anew. Running calls,
   * downloads among them, go on.
   */
  endStreamsOf(whose: (agent: Agent) => boolean): void {
    this.parts.openStreams.shutDown((stream, agent) => !stream.finite && whose(agent));
  }

  private async idleWithin(milliseconds: number): Promise<void> {
    if (this.running.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.whenIdle = resolve;
      timer = setTimeout(resolve, milliseconds);
    });
    clearTimeout(timer);
  }

  /** A streamed answer counts as running until its client has it. Streams that stay open are told apart when they end. */
  private flushed({ response }: Exchange): Promise<void> | void {
    if (!response.writableEnded || response.writableFinished || response.destroyed) return;
    return new Promise((resolve) => response.once('close', resolve));
  }

  private observe(exchange: Exchange): void {
    const { telemetry, settings } = this.parts;
    if (!telemetry) return;
    const { verb, headers, request } = exchange;
    const isFile = this.ladderOf(exchange) === DOWNLOAD_LADDER;
    const route = isFile ? `${DOWNLOADS}{id}` : settings.path;
    exchange.observed = telemetry.request({ verb, route, headers, httpVersion: request.httpVersion });
  }

  private ladderOf({ path: asked }: Exchange): readonly Rung[] {
    const { downloads, settings } = this.parts;
    const isMcp = asked === settings.path || asked.startsWith(`${settings.path}/`);
    return downloads && !isMcp && asked.startsWith(DOWNLOADS) ? DOWNLOAD_LADDER : LADDER;
  }

  private async climb(exchange: Exchange): Promise<RungVerdict> {
    try {
      for (const rung of this.ladderOf(exchange)) {
        const told = rung === authenticate ? exchange.observed?.authenticating() : undefined;
        const verdict = rung.check(exchange);
        const settled = verdict instanceof Promise ? await verdict : verdict;
        told?.(settled === null);
        if (settled) return answered(settled, rung, exchange);
      }
    } catch (fault) {
      this.parts.log.warn(faultLine('[McpEdge]', fault));
      if (fault instanceof SharedStateUnavailable) return stateUnavailable(exchange.message.id);
    }
    return internalError(exchange.message.id);
  }
}
