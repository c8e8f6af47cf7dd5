import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Agent } from '#core';
import type { Authenticator } from '#auth';
import { ProcessSessionStore, type SessionNotice, type SessionStore, SharedStateUnavailable } from '#state';
import { faultLine, type Kernel, type WarningLog } from '#dispatcher';
import type { Telemetry } from '#telemetry';
import { processWire, type Wire } from '../sessions/wire.js';
import { KeepAlives } from '../sse/event-stream.js';
import { OpenStreams } from '../sse/open-streams.js';
import { authenticate, spendRequest } from './caller-checks.js';
import { PendingBodies, UnreadAnswers } from './client-memory.js';
import { dispatch } from './dispatch.js';
import { DOWNLOAD_CHECKS, DOWNLOADS } from './downloads.js';
import {
  type AbandonedDispatch,
  type Downloads,
  EdgeCounts,
  type EdgeDependencies,
} from './edge-dependencies.js';
import { compileEdgeOptions, type McpEdgeOptions } from './edge-options.js';
import { HttpExchange, pathOf, type RequestCheck, type CheckVerdict } from './http-exchange.js';
import { internalError, stateUnavailable } from './refusals.js';
import { REQUEST_CHECKS, ROUTE_CHECKS } from './request-checks.js';
import { type NotServed, notServed } from './routes.js';

export interface McpEdgeDependencies {
  readonly kernel: Kernel;
  readonly authenticator: Authenticator;
  /** Default: in this process's memory, which serves one replica only. */
  readonly sessions?: SessionStore;
  /** Default: one that serves this process only. */
  readonly wire?: Wire;
  /** Files that are served beside MCP, under `/exports/`. Default: none. */
  readonly downloads?: Downloads;
  /** Called for every client that left before its answer. Default: nothing is logged. */
  readonly onAbandoned?: (dispatch: AbandonedDispatch) => void;
  /** Default: nothing is measured. */
  readonly telemetry?: Telemetry | undefined;
  /** Default: nothing is logged. */
  readonly log?: WarningLog;
}

/** Milliseconds that aborted calls have to answer their clients. */
const ABORT_GRACE = 1_000;

/** A log that fails must not fail the request. */
function harmless(log: WarningLog | undefined): WarningLog {
  return {
    warn: (line) => {
      try {
        log?.warn(line);
      } catch {
        // A log that fails has no other place to report to.
      }
    },
  };
}

/** The outcome of a call is measured with the call; any other answer is the refusal of a check. */
function answered(
  verdict: CheckVerdict,
  requestCheck: RequestCheck,
  { observed }: HttpExchange,
): CheckVerdict {
  if (
    observed &&
    requestCheck !== dispatch &&
    verdict !== null &&
    typeof verdict === 'object' &&
    verdict.status >= 400
  )
    observed.refused(requestCheck.name);
  return verdict;
}

/** MCP over HTTP, on plain Node requests: the surrounding framework passes them on unread. */
export class McpEdge {
  private readonly dependencies: EdgeDependencies & { accepting: boolean };
  private readonly running = new Set<HttpExchange>();
  private whenIdle: (() => void) | null = null;

  /** @throws TypeError naming the invalid option */
  constructor(given: McpEdgeDependencies, options: McpEdgeOptions = {}) {
    const { kernel, authenticator, sessions, wire, downloads, onAbandoned, telemetry } = given;
    const log = harmless(given.log);
    const settings = compileEdgeOptions(options);
    if (settings.maxConcurrentDispatchers === null)
      log.warn('[McpEdge] maxConcurrentDispatchers is null: nothing bounds how many streams are open');
    this.dependencies = {
      settings,
      kernel,
      authenticator,
      sessions: sessions ?? new ProcessSessionStore(),
      wire: wire ?? processWire(log),
      keepAlives: new KeepAlives(settings.heartbeatInterval),
      counts: new EdgeCounts(),
      openStreams: new OpenStreams({ authenticator, interval: settings.credentialsInterval, log }),
      pendingBodies: new PendingBodies(),
      unread: new UnreadAnswers({ timeout: settings.readerTimeout, perCaller: settings.maxUnread }),
      downloads,
      onAbandoned: onAbandoned ?? (() => undefined),
      telemetry,
      log,
      accepting: true,
    };
  }

  /** Streamed answers in progress, those whose client left included. */
  get activeDispatcherCount(): number {
    return this.dependencies.counts.dispatchers;
  }

  /** Listening streams that are open. */
  get activeListeningStreamCount(): number {
    return this.dependencies.counts.listeningStreams;
  }

  /** Calls that still ran when their client left, since the start. */
  get abandonedDispatcherCount(): number {
    return this.dependencies.counts.abandonedDispatchers;
  }

  /**
   * Sends a notification to the listening stream of a session, on whichever replica that is.
   * @returns whether a stream took it. @throws TypeError for an empty method
   */
  notify(session: string, notice: SessionNotice): Promise<boolean> {
    return this.dependencies.wire.listening.notify(session, notice);
  }

  /** Whether this edge answers a request target, even if only with 404. */
  claims(url: string): boolean {
    const asked = pathOf(url);
    const { path, healthPath } = this.dependencies.settings;
    return (
      asked === path ||
      asked.startsWith(`${path}/`) ||
      asked === healthPath ||
      (this.dependencies.downloads !== undefined && asked.startsWith(DOWNLOADS))
    );
  }

  /** Answers of this process that wait for their readers: routes beside MCP count theirs here as well. */
  get unread(): UnreadAnswers {
    return this.dependencies.unread;
  }

  /** False from the moment it begins to close. */
  get isAccepting(): boolean {
    return this.dependencies.accepting;
  }

  /** Requests that have arrived and are not answered yet. */
  get answering(): number {
    return this.running.size;
  }

  /**
   * The checks before authentication, for routes beside MCP that return data: host, limit, origin.
   * @returns the refusal, or null to let the request pass
   */
  async refusalFor(request: IncomingMessage, response: ServerResponse): Promise<NotServed | null> {
    const exchange = new HttpExchange(request, response, this.dependencies);
    for (const requestCheck of ROUTE_CHECKS) {
      const verdict = await requestCheck.check(exchange);
      if (verdict !== null && typeof verdict === 'object') return notServed(verdict.status, verdict.headers);
    }
    return null;
  }

  /**
   * Counts a request to a route beside MCP against the limit of its principal.
   * @returns seconds to wait, or null to let it pass. @throws SharedStateUnavailable
   */
  spendRequest(principal: string): Promise<number | null> {
    return spendRequest(this.dependencies, principal);
  }

  /** Answers one request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.dependencies.unread.watch(request);
    const exchange = new HttpExchange(request, response, this.dependencies);
    this.running.add(exchange);
    this.observe(exchange);
    try {
      const verdict = await this.runChecks(exchange);
      if (verdict !== 'streamed' && verdict && verdict !== 'gone') exchange.send(verdict);
      this.dependencies.unread.wrote(response);
      if (verdict === 'streamed') await this.flushed(exchange);
    } catch (error) {
      // An answer that cannot be sent, as with a challenge that no header can carry, is dropped and not sent partially.
      this.dependencies.log.warn(faultLine('[McpEdge]', error));
      response.destroy();
    } finally {
      exchange.observed?.ends(exchange.isGone ? null : response.statusCode);
      this.running.delete(exchange);
      if (this.running.size === 0) this.whenIdle?.();
    }
  }

  /**
   * Refuses new requests, ends open streams with a final message, lets running calls finish, and aborts those that are still
   * running after the grace period.
   * @param grace milliseconds. Default 5,000
   */
  async close(grace = 5_000): Promise<void> {
    this.dependencies.accepting = false;
    this.dependencies.openStreams.shutDown(({ finite }) => !finite);
    await this.idleWithin(grace);
    this.dependencies.openStreams.shutDown(() => true);
    this.dependencies.wire.calls.endAll('server_shutdown');
    await this.idleWithin(ABORT_GRACE);
  }

  /**
   * Ends the listening streams of these agents: their clients reconnect and are authenticated again. Running calls, downloads
   * among them, continue.
   */
  endStreamsOf(whose: (agent: Agent) => boolean): void {
    this.dependencies.openStreams.shutDown((stream, agent) => !stream.finite && whose(agent));
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

  /** A streamed answer counts as running until its client has received it. Listening streams are counted separately. */
  private flushed({ response }: HttpExchange): Promise<void> | void {
    if (!response.writableEnded || response.writableFinished || response.destroyed) return;
    return new Promise((resolve) => response.once('close', resolve));
  }

  private observe(exchange: HttpExchange): void {
    const { telemetry, settings } = this.dependencies;
    if (!telemetry) return;
    const { verb, headers, request } = exchange;
    const isFile = this.checksOf(exchange) === DOWNLOAD_CHECKS;
    const route = isFile ? `${DOWNLOADS}{id}` : settings.path;
    exchange.observed = telemetry.request({ verb, route, headers, httpVersion: request.httpVersion });
  }

  private checksOf({ path: asked }: HttpExchange): readonly RequestCheck[] {
    const { downloads, settings } = this.dependencies;
    const isMcp = asked === settings.path || asked.startsWith(`${settings.path}/`);
    return downloads && !isMcp && asked.startsWith(DOWNLOADS) ? DOWNLOAD_CHECKS : REQUEST_CHECKS;
  }

  private async runChecks(exchange: HttpExchange): Promise<CheckVerdict> {
    try {
      for (const requestCheck of this.checksOf(exchange)) {
        const told = requestCheck === authenticate ? exchange.observed?.authenticating() : undefined;
        const verdict = requestCheck.check(exchange);
        const settled = verdict instanceof Promise ? await verdict : verdict;
        told?.(settled === null);
        if (settled) return answered(settled, requestCheck, exchange);
      }
    } catch (error) {
      this.dependencies.log.warn(faultLine('[McpEdge]', error));
      if (error instanceof SharedStateUnavailable) return stateUnavailable(exchange.message.id);
    }
    return internalError(exchange.message.id);
  }
}
