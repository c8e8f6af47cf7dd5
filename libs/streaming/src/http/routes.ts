import type { IncomingMessage } from 'node:http';
import { BODY_WORDS, ROUTE_WORDS } from './refusals.js';

/** The refusal of a request beside MCP: HTTP status, message and headers, all of which are returned. */
export class NotServed extends Error {
  override readonly name = 'NotServed';
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** A refusal of a route without JSON-RPC. */
export function notServed(status: number, headers: Readonly<Record<string, string>> = {}): NotServed {
  return new NotServed(status, ROUTE_WORDS[status] ?? String(ROUTE_WORDS[400]), headers);
}

/** The reason why a body is refused: HTTP status and message. */
export class UnusableBody extends Error {
  override readonly name = 'UnusableBody';
  constructor(
    readonly status: 400 | 413 | 415,
    message: string,
  ) {
    super(message);
  }
}

/** Bytes. */
const MAX_BODY = 16_384;
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/**
 * Reads a small JSON object. Only the JSON content type is accepted: a form of another site cannot send it without a
 * preflight request.
 * @throws UnusableBody
 */
export async function readSmallJson(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  if (!JSON_TYPE.test(request.headers['content-type'] ?? '')) throw new UnusableBody(...BODY_WORDS.notJson);
  const value = parsed(await readText(request));
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new UnusableBody(...BODY_WORDS.notObject);
  return value as Record<string, unknown>;
}

/** @throws UnusableBody for a body that is too large, and for one whose sender left in the middle of it */
async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_BODY) throw new UnusableBody(...BODY_WORDS.tooLarge);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof UnusableBody) throw error;
    throw new UnusableBody(...BODY_WORDS.notObject);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnusableBody(...BODY_WORDS.notObject);
  }
}
