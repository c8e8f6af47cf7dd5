import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { type Agent, SERVER_SHUTDOWN } from '#core';
import { faultLine } from '#dispatcher';
import { type SessionNotice, SharedStateUnavailable } from '#state';
import {
  accept,
  accepting,
  body,
  customHeader,
  declaredLength,
  envelope,
  era,
  host,
  json,
  legacyVersion,
  lengthRequired,
  mediaType,
  messageShape,
  methodHeader,
  jsonRpc,
  nameHeader,
  origin,
  path,
  postOnly,
  preAuthLimit,
  servedMethod,
  servedVersion,
  versionHeader,
  wholeHeaders,
} from './arrival-checks.js';
import {
  acknowledge,
  authenticate,
  batchSession,
  requestLimit,
  session,
  spendRequest,
  spokenVersion,
  turn,
} from './caller-checks.js';
import type { UnreadAnswers } from './client-memory.js';
import { permitsPreflight, openToPage, preflightFor } from './cross-origin.js';
import { dispatch } from './dispatch.js';
import { DOWNLOAD_CHECKS, DOWNLOADS } from './downloads.js';
import { EdgeDependencies } from './edge-dependencies.js';
import {
  type CheckVerdict,
  HttpExchange,
  type RequestCheck,
  readPath,
  readTrustedHeaders,
} from './http-exchange.js';
import { internalError, stateUnavailable } from './refusals.js';
import { type NotServed, notServed } from './routes.js';
import { deleteSession, listen } from './session-requests.js';

/**
 * Every check of a request, in the order in which they run: the first that answers ends the request. Cheap checks come before
 * expensive ones, so that a malformed request is never authenticated; the last check always answers.
 */
export const REQUEST_CHECKS: readonly RequestCheck[] = [
  wholeHeaders,
  path,
  host,
  accepting,
  preAuthLimit,
  preflightFor('GET, POST, DELETE, OPTIONS'),
  deleteSession,
  listen,
  postOnly,
  lengthRequired,
  declaredLength,
  mediaType,
  accept,
  origin,
  customHeader,
  body,
  json,
  messageShape,
  era,
  jsonRpc,
  envelope,
  versionHeader,
  methodHeader,
  nameHeader,
  servedVersion,
  servedMethod,
  legacyVersion,
  authenticate,
  requestLimit,
  session,
  batchSession,
  spokenVersion,
  acknowledge,
  turn,
  dispatch,
];

/** The checks of every route that authenticates: a limit that one route did not count would not be a limit. */
const ROUTE_CHECKS: readonly RequestCheck[] = [wholeHeaders, host, accepting, preAuthLimit, origin];

/** Milliseconds that aborted calls have to answer their clients. */
const ABORT_GRACE = 1_000;

/** MCP over HTTP, on plain Node requests: the surrounding framework passes them on unread. */
@Injectable()
export class McpEdge {
  /** A number: a set would keep answered requests from being collected (`RunningCalls`). */
  private running = 0;
  private whenIdle: (() => void) | null = null;

  constructor(private readonly edge: EdgeDependencies) {
    if (edge.settings.maxConcurrentDispatchers === null)
      edge.log.warn('maxConcurrentDispatchers is null: nothing bounds how many streams are open');
  }

  /** Streamed answers in progress, those whose client left included. */
  get activeDispatcherCount(): number {
    return this.edge.counts.dispatchers.open;
  }

  get activeListeningStreamCount(): number {
    return this.edge.counts.listeningStreams.open;
  }

  /** Calls that still ran when their client left, since the start. */
  get abandonedDispatcherCount(): number {
    return this.edge.counts.abandonedDispatchers;
  }

  /**
   * Sends a notification to the listening stream of a session, on whichever replica that is.
   * @returns whether a stream took it. @throws TypeError for an empty method
   */
  notify(session: string, notice: SessionNotice): Promise<boolean> {
    return this.edge.wire.listening.notify(session, notice);
  }

  /** Answers of this process that wait for their readers: routes beside MCP count theirs here as well. */
  get unread(): UnreadAnswers {
    return this.edge.unread;
  }

  /** False from the moment it begins to close. */
  get isAccepting(): boolean {
    return this.edge.accepting;
  }

  /** Requests that have arrived and are not answered yet. */
  get answering(): number {
    return this.running;
  }

  /**
   * The checks before authentication, for routes beside MCP that return data: host, limit, origin.
   * @returns the refusal, or null to let the request pass
   */
  async refusalFor(request: IncomingMessage, response: ServerResponse): Promise<NotServed | null> {
    const exchange = new HttpExchange(request, response, this.edge);
    for (const requestCheck of ROUTE_CHECKS) {
      const verdict = await requestCheck.check(exchange);
      if (verdict !== null && typeof verdict === 'object') return notServed(verdict.status, verdict.headers);
    }
    return null;
  }

  /**
   * Lets pages of listed origins read the answer of a route beside MCP, and answers what their browsers ask beforehand.
   * @param methods of the route
   * @returns whether the request was such a question
   */
  async openRoute(
    request: IncomingMessage,
    response: ServerResponse,
    { route, methods }: { readonly route: string; readonly methods: readonly string[] },
  ): Promise<boolean> {
    const { settings } = this.edge;
    openToPage(readTrustedHeaders(request), response, settings);
    if (request.method !== 'OPTIONS' || methods.length === 0) return false;
    if (!permitsPreflight(new HttpExchange(request, response, this.edge))) return false;
    const arrival = ROUTE_CHECKS.filter((requestCheck) => requestCheck !== origin);
    await this.answer(
      request,
      response,
      [...arrival, preflightFor([...methods, 'OPTIONS'].join(', '))],
      route,
    );
    return true;
  }

  /**
   * Counts a request to a route beside MCP against the limit of its principal.
   * @returns seconds to wait, or null to let it pass. @throws SharedStateUnavailable
   */
  spendRequest(principal: string): Promise<number | null> {
    return spendRequest(this.edge, principal);
  }

  /** Whether a request target is that of MCP or below it: this edge answers it, even if only with 404. */
  claims(url: string): boolean {
    const { path } = this.edge.settings;
    const asked = readPath(url);
    return asked === path || asked.startsWith(`${path}/`);
  }

  /** Answers a request for MCP. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.answer(request, response, REQUEST_CHECKS, this.edge.settings.path);
  }

  /** Answers a request for a file of an export. Never rejects. */
  serveFile(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.answer(request, response, DOWNLOAD_CHECKS, `${DOWNLOADS}{id}`);
  }

  /** @param route of the request, for telemetry */
  private async answer(
    request: IncomingMessage,
    response: ServerResponse,
    checks: readonly RequestCheck[],
    route: string,
  ): Promise<void> {
    this.edge.unread.watch(request);
    const exchange = new HttpExchange(request, response, this.edge);
    openToPage(exchange.headers, response, this.edge.settings);
    this.running += 1;
    const { verb, headers, requestId } = exchange;
    const { httpVersion } = request;
    exchange.observed =
      this.edge.telemetry?.request({ verb, route, headers, requestId, httpVersion }) ?? null;
    try {
      const verdict = await this.runChecks(exchange, checks);
      if (exchange.refusalsUntilLater > 0) await exchange.keepRefusalPace();
      if (verdict !== 'streamed' && verdict && verdict !== 'gone') exchange.send(verdict);
      this.edge.unread.wrote(response);
      // A streamed answer counts as running until its client has received it. Listening streams are counted separately.
      if (
        verdict === 'streamed' &&
        response.writableEnded &&
        !response.writableFinished &&
        !response.destroyed
      )
        await new Promise((resolve) => response.once('close', resolve));
    } catch (error) {
      // An answer that cannot be sent, as with a challenge that no header can carry, is dropped and not sent partially.
      this.edge.log.warn(faultLine('', error));
      response.destroy();
    } finally {
      exchange.observed?.ends(exchange.isGone ? null : response.statusCode);
      this.running -= 1;
      if (this.running === 0) this.whenIdle?.();
    }
  }

  /**
   * Refuses new requests, ends open streams with a final message, lets running calls finish, and aborts those that are still
   * running after the grace period.
   * @param grace milliseconds. Default 5,000
   */
  async close(grace = 5_000): Promise<void> {
    this.edge.accepting = false;
    this.edge.refusalPace.close();
    this.edge.openStreams.shutDown(({ finite }) => !finite);
    await this.idleWithin(grace);
    this.edge.openStreams.shutDown(() => true);
    this.edge.wire.calls.endAll(SERVER_SHUTDOWN);
    await this.idleWithin(ABORT_GRACE);
  }

  /**
   * Ends the listening streams of these agents: their clients reconnect and are authenticated again. Running calls, downloads
   * among them, continue.
   */
  endStreamsWhere(whose: (agent: Agent) => boolean): void {
    this.edge.openStreams.shutDown((stream, agent) => !stream.finite && whose(agent));
  }

  private async idleWithin(milliseconds: number): Promise<void> {
    if (this.running === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.whenIdle = resolve;
      timer = setTimeout(resolve, milliseconds);
    });
    clearTimeout(timer);
  }

  private async runChecks(exchange: HttpExchange, checks: readonly RequestCheck[]): Promise<CheckVerdict> {
    try {
      for (const requestCheck of checks) {
        const ended = requestCheck === authenticate ? exchange.observed?.startAuthentication() : undefined;
        const verdict = requestCheck.check(exchange);
        const settled = verdict instanceof Promise ? await verdict : verdict;
        ended?.(settled === null);
        if (!settled) continue;
        // The outcome of a call is measured with the call.
        if (requestCheck !== dispatch && typeof settled === 'object' && settled.status >= 400)
          exchange.observed?.recordRefusal(requestCheck.name);
        return settled;
      }
    } catch (error) {
      this.edge.log.warn(faultLine('', error));
      if (error instanceof SharedStateUnavailable) return stateUnavailable(exchange.message.id);
    }
    return internalError(exchange.message.id);
  }
}
