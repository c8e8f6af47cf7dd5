import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { LogLevel, Era } from '#core';
import {
  isJsonObject,
  type JsonObject,
  member,
  PROTOCOL_VERSION_KEY,
  type Kernel,
  type KernelResult,
} from '#dispatcher';

/** Maximum nesting depth of objects and arrays; the message itself is the first level. */
const MAX_DEPTH = 20;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `[` and `{` differ in one bit only, and so do `]` and `}`. */
const CASE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Counts brackets outside strings, so that a deeply nested body is refused before it is parsed. */
function tooDeep(body: Buffer): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] as number;
    if (quoted) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if ((byte | CASE_BIT) === OPEN) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if ((byte | CASE_BIT) === CLOSE) depth -= 1;
  }
  return false;
}

export type JsonReading = { readonly ok: true; readonly value: unknown } | { readonly ok: false };

/** Parses a request body. An empty one is `{}`; bytes that are no UTF-8 are no JSON. */
export function readJson(body: Buffer): JsonReading {
  if (body.length === 0) return { ok: true, value: {} };
  if (!isUtf8(body) || tooDeep(body)) return { ok: false };
  try {
    return { ok: true, value: JSON.parse(body.toString('utf8')) as unknown };
  } catch {
    return { ok: false };
  }
}

/** A JSON-RPC message whose outer form has been checked. */
export interface Message {
  /** Empty for a posted response. */
  readonly method: string;
  readonly params: unknown;
  /** As sent: text, a number, a truth value or null; `undefined` when the message has none. */
  readonly id: unknown;
  readonly jsonrpc: unknown;
  readonly isResponse: boolean;
  /** Of a posted response. */
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Frees the parameters of a message that has its answer. */
export function forgetParams(message: Message): void {
  (message as { params: unknown }).params = undefined;
}

export const NO_MESSAGE: Message = {
  method: '',
  params: undefined,
  id: undefined,
  jsonrpc: undefined,
  isResponse: false,
};

/** A request, a notification, or the reply to a request to the client; `null` for anything else. */
export function readMessage(value: unknown): Message | null {
  if (!isJsonObject(value)) return null;
  const { method, id, params, jsonrpc } = value;
  // An object is no valid request id: neither for the client that would look its answer up, nor for a cancellation.
  if (typeof id === 'object' && id !== null) return null;
  if (!('method' in value) && 'id' in value && ('result' in value || 'error' in value)) {
    const { result, error } = value;
    return { method: '', params, id, jsonrpc, isResponse: true, result, error };
  }
  if (typeof method !== 'string' || method === '') return null;
  return { method, params, id, jsonrpc, isResponse: false };
}

/** Whether the sender expects no answer. */
export function isNotification({ method, id }: Message): boolean {
  return method.startsWith('notifications/') && (id === undefined || id === null);
}

/** The protocol version in the body; `undefined` when there is none. */
export function claimedVersion({ params }: Message): unknown {
  return member(member(params, '_meta'), PROTOCOL_VERSION_KEY);
}

/** Several messages, none of which opens a session or belongs to another era; `null` when one is of another kind. */
export function readBatch(values: readonly unknown[], limit: number): Message[] | null {
  if (values.length === 0 || values.length > limit) return null;
  const messages: Message[] = [];
  for (const value of values) {
    const message = readMessage(value);
    if (!message || message.method === 'initialize' || claimedVersion(message) !== undefined) return null;
    messages.push(message);
  }
  return messages;
}

/** How a client states its protocol version: by its session, or by each request. */
export interface ProtocolSession {
  readonly era: Era;
  readonly version: string;
  readonly clientCapabilities: JsonObject;
  /** Of its session; default: none was set. */
  readonly logLevel?: LogLevel | undefined;
}

/** A message whose version is being determined. */
export interface CheckedMessage {
  readonly message: Message;
  /** None on a transport without. */
  readonly headers: IncomingHttpHeaders;
  readonly era: Era;
  version: string;
  clientCapabilities: JsonObject;
  /** The edge that received the message. */
  readonly edge: { readonly kernel: Kernel };
}

/** A complete HTTP answer. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Number of bytes that follow `body`, where it is known beforehand. */
  readonly tail?: Buffer;
  /** Besides `Content-Type` and `Content-Length`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export function reply(status: number, body: string, headers?: Readonly<Record<string, string>>): Reply {
  return { status, body, headers };
}

/** Accepted without a body. */
export const ACCEPTED: Reply = Object.freeze(reply(202, ''));
export const NO_CONTENT: Reply = Object.freeze(reply(204, ''));

export interface ErrorFrame {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** A JSON-RPC error as an HTTP answer. `id` is null where the request's id is unknown or may not be trusted. */
export function errorReply(
  status: number,
  error: ErrorFrame,
  id: unknown = null,
  headers?: Readonly<Record<string, string>>,
): Reply {
  const body = JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error });
  return reply(status, body, headers);
}

/** A result as an HTTP answer. */
export function resultReply(
  id: unknown,
  known: KernelResult,
  headers?: Readonly<Record<string, string>>,
): Reply {
  const head = `{"jsonrpc":"2.0","id":${id === undefined ? 'null' : JSON.stringify(id)}`;
  const { envelopeTail } = known;
  if (envelopeTail) return { status: 200, body: head, tail: envelopeTail, headers };
  return reply(200, `${head},"result":${JSON.stringify(known.result)}}`, headers);
}
