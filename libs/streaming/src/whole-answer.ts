import { discardBody } from './body-reader.js';
import type { Exchange } from './exchange.js';
import type { Reply } from './reply.js';

/** Sends an answer as one body, in one write: the response is corked until its end. */
export function sendWhole({ request, response }: Exchange, { status, body, tail, headers }: Reply): void {
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
