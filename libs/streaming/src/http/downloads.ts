import type { ServerResponse } from 'node:http';
import { type ErrorCode, Refused, sanitizeCorrelationId, Unauthorized, SERVER_SHUTDOWN } from '#core';
import { SharedStateUnavailable } from '#state';
import { faultLine } from '#dispatcher';
import { accepting, customHeader, host, origin, preAuthLimit, wholeHeaders } from './arrival-checks.js';
import {
  authenticate,
  readCredentials,
  fileTurn,
  requestLimit,
  refuseUnauthorized,
} from './caller-checks.js';
import { preflightFor } from './cross-origin.js';
import type { Download } from './edge-dependencies.js';
import { type HttpExchange, headerText, type RequestCheck, type CheckVerdict } from './http-exchange.js';
import {
  FILE_BUSY,
  FILE_FAILED,
  FILE_METHOD_NOT_ALLOWED,
  FILE_NOT_FOUND,
  fileRefused,
  fileShareTaken,
} from './refusals.js';
import { type Reply, reply } from '../message.js';
import type { UnreadAnswers } from './client-memory.js';

/** The caller did not cause the error: another attempt may succeed. */
const UNAVAILABLE: ReadonlySet<string> = new Set<ErrorCode>([
  'parse_error',
  'timeout',
  'cancelled',
  'audit_unavailable',
]);

/** The reason why no file is sent, known before any of it was sent. */
function refuseDownload(error: unknown, exchange: HttpExchange): Reply {
  const { edge } = exchange;
  if (error instanceof Unauthorized) return refuseUnauthorized(exchange);
  if (error instanceof SharedStateUnavailable) return FILE_BUSY;
  if (!(error instanceof Refused)) {
    edge.log.warn(faultLine('a file failed:', error));
    return FILE_FAILED;
  }
  const { code, message, opaque, retryAfter } = error.refusal;
  const body = opaque ? null : { error: message, error_code: code };
  const wait = retryAfter !== undefined ? { 'Retry-After': String(Math.ceil(retryAfter)) } : undefined;
  if (code === 'rate_limited') return fileRefused(429, body, wait);
  if (code === 'internal_error') return FILE_FAILED;
  return fileRefused(UNAVAILABLE.has(code) ? 503 : 403, body, wait);
}

/**
 * Sends a file as fast as its reader accepts it: the next chunk is created when the last one has been sent. An error in the
 * middle breaks the connection, so that no reader treats a part as the whole.
 * @throws the error of the first chunk, when nothing was sent yet
 */
async function sendDownload(
  { response, edge: { settings, log, unread } }: HttpExchange,
  { fileName, mimeType, pieces }: Download,
  running: AbortController,
): Promise<CheckVerdict> {
  const first = await pieces.next();
  if (response.destroyed) {
    await pieces.return();
    return 'gone';
  }
  response.writeHead(200, {
    'Content-Type': mimeType,
    'Content-Disposition': `attachment; filename="${fileName}"`,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  // The end of the transfer aborts a chunk that is waiting.
  running.signal.addEventListener('abort', () => response.destroy(), { once: true });
  if (running.signal.aborted) response.destroy();
  try {
    for (let piece = first; !piece.done; piece = await pieces.next()) {
      if (!(await writeChunk(response, piece.value, settings.downloadTimeout, unread))) {
        running.abort('client_disconnect');
        return 'gone';
      }
    }
    if (await endResponse(response, settings.downloadTimeout)) return 'streamed';
    response.destroy();
    return 'gone';
  } catch (error) {
    if (!running.signal.aborted) log.warn(faultLine('a file was broken off:', error));
    response.destroy();
    return 'gone';
  } finally {
    await pieces.return();
  }
}

/** Writes, and waits until there is space for more. @returns false when the reader left, or accepted nothing for too long */
function writeChunk(
  response: ServerResponse,
  text: string,
  timeout: number,
  unread: UnreadAnswers,
): Promise<boolean> | boolean {
  if (response.destroyed) return false;
  if (response.write(text)) return true;
  const isTaken = happens(response, 'drain', timeout);
  unread.wrote(response);
  return isTaken;
}

function endResponse(response: ServerResponse, timeout: number): Promise<boolean> {
  const finished = happens(response, 'finish', timeout);
  response.end();
  return finished;
}

/** @returns false when the reader left first, or accepted nothing for too long */
function happens(response: ServerResponse, event: 'drain' | 'finish', timeout: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isTaken: boolean) => {
      clearTimeout(timer);
      response.off(event, settleTrue).off('close', settleFalse);
      resolve(isTaken);
    };
    const settleTrue = () => settle(true);
    const settleFalse = () => settle(false);
    const timer = setTimeout(settleFalse, timeout);
    response.once(event, settleTrue).once('close', settleFalse);
  });
}

/** Below it every path is the id of a file. */
export const DOWNLOADS = '/exports/';

const ID = /^[A-Za-z0-9_-]{1,128}$/;

const REVOKED_REPLY: Reply = reply(204, '');

const verb: RequestCheck = {
  name: 'verb',
  check: ({ verb: asked }) => (asked === 'GET' || asked === 'DELETE' ? null : FILE_METHOD_NOT_ALLOWED),
};

const download: RequestCheck = {
  name: 'download',
  check: async (exchange) => {
    const { edge } = exchange;
    const { downloads } = edge;
    const id = exchange.path.slice(DOWNLOADS.length);
    const { agent } = exchange;
    if (!agent || !ID.test(id)) return FILE_NOT_FOUND;
    if (exchange.verb === 'DELETE') return revoke(downloads.revoke(id, agent), exchange);
    const { downloads: places } = edge.counts;
    const lack = places.findLack(agent.principal);
    if (lack) return lack === 'share' ? fileShareTaken(places.share) : FILE_BUSY;
    const leave = places.take(agent.principal);
    try {
      return await send(id, exchange);
    } finally {
      leave();
    }
  },
};

async function revoke(revoking: Promise<boolean>, exchange: HttpExchange): Promise<Reply> {
  try {
    return (await revoking) ? REVOKED_REPLY : FILE_NOT_FOUND;
  } catch (error) {
    return refuseDownload(error, exchange);
  }
}

async function send(id: string, exchange: HttpExchange): Promise<CheckVerdict> {
  const { agent, edge } = exchange;
  if (!agent) return FILE_NOT_FOUND;
  const running = new AbortController();
  const stop = () => running.abort('client_disconnect');
  exchange.onGone = stop;
  if (exchange.isGone) return 'gone';
  const telemetry = exchange.observed?.file();
  const stream = { finite: true, shutDown: () => running.abort(SERVER_SHUTDOWN) };
  edge.openStreams.add(stream, { agent, credentials: readCredentials(exchange) });
  try {
    const correlationId =
      agent.correlationId ?? sanitizeCorrelationId(headerText(exchange.headers, 'mcp-session-id'));
    const opened = await edge.downloads.open(id, {
      agent,
      signal: running.signal,
      ...(correlationId !== undefined && { correlationId }),
      httpRequestId: exchange.requestId,
      ...(telemetry && { telemetry }),
    });
    return opened ? await sendDownload(exchange, opened, running) : FILE_NOT_FOUND;
  } catch (error) {
    return refuseDownload(error, exchange);
  } finally {
    edge.openStreams.remove(stream);
  }
}

/** The checks before a file: the edge's own checks, in its order, as far as they do not concern messages. */
export const DOWNLOAD_CHECKS: readonly RequestCheck[] = [
  wholeHeaders,
  host,
  accepting,
  preAuthLimit,
  preflightFor('GET, DELETE, OPTIONS'),
  verb,
  origin,
  customHeader,
  authenticate,
  requestLimit,
  fileTurn,
  download,
];
