import { sanitizeCorrelationId } from '#agent';
import { isFull } from '../answers/carrier-choice.js';
import type { Exchange } from '../exchange.js';
import { reply, type Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import { accepting, host, preAuthLimit } from '../rungs/arrival.js';
import { customHeader, origin } from '../rungs/browser-origin.js';
import { authenticate, credentialsOf } from '../rungs/caller.js';
import { requestLimit } from '../rungs/request-limit.js';
import type { EdgeParts, Rung, RungVerdict } from '../rungs/rung.js';
import { fileTurn } from '../rungs/turn.js';
import { FILE_BUSY, FILE_METHOD_NOT_ALLOWED, FILE_NOT_FOUND } from '../http/refusals.js';
import { refusalReply } from './refusal-reply.js';
import { sendDownload } from './send-download.js';

/** Below it every path is the id of a file. */
export const DOWNLOADS = '/exports/';

const ID = /^[A-Za-z0-9_-]{1,128}$/;

const REVOKED: Reply = reply(204, '');

const verb: Rung = {
  name: 'verb',
  check: ({ verb: asked }) => (asked === 'GET' || asked === 'DELETE' ? null : FILE_METHOD_NOT_ALLOWED),
};

const download: Rung = {
  name: 'download',
  check: async (exchange, edge) => {
    const { downloads } = edge;
    const id = exchange.path.slice(DOWNLOADS.length);
    const { agent } = exchange;
    if (!downloads || !agent || !ID.test(id)) return FILE_NOT_FOUND;
    if (exchange.verb === 'DELETE') return revoke(downloads.revoke(id, agent), edge, exchange);
    if (isFull(edge.counts.downloads, edge)) return FILE_BUSY;
    edge.counts.downloads += 1;
    try {
      return await send(id, exchange, edge);
    } finally {
      edge.counts.downloads -= 1;
    }
  },
};

async function revoke(revoking: Promise<boolean>, edge: EdgeParts, exchange: Exchange): Promise<Reply> {
  try {
    return (await revoking) ? REVOKED : FILE_NOT_FOUND;
  } catch (fault) {
    return refusalReply(fault, edge, exchange);
  }
}

async function send(id: string, exchange: Exchange, edge: EdgeParts): Promise<RungVerdict> {
  const { agent } = exchange;
  if (!agent || !edge.downloads) return FILE_NOT_FOUND;
  const running = new AbortController();
  const stop = () => running.abort('client_disconnect');
  exchange.onGone = stop;
  if (exchange.isGone) return 'gone';
  const telemetry = exchange.observed?.file();
  const stream = { finite: true, shutDown: () => running.abort('server_shutdown') };
  edge.openStreams.add(stream, { agent, credentials: credentialsOf(exchange) });
  try {
    const correlationId =
      agent.correlationId ?? sanitizeCorrelationId(headerText(exchange.headers, 'mcp-session-id'));
    const opened = await edge.downloads.open(id, {
      agent,
      signal: running.signal,
      ...(correlationId !== undefined && { correlationId }),
      ...(telemetry && { telemetry }),
    });
    return opened ? await sendDownload(exchange, opened, running, edge) : FILE_NOT_FOUND;
  } catch (fault) {
    return refusalReply(fault, edge, exchange);
  } finally {
    edge.openStreams.remove(stream);
  }
}

/** What stands before a file: the edge's own rungs, in its order, as far as they do not concern messages. */
export const DOWNLOAD_LADDER: readonly Rung[] = [
  host,
  accepting,
  preAuthLimit,
  verb,
  origin,
  customHeader,
  authenticate,
  requestLimit,
  fileTurn,
  download,
];
