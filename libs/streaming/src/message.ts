import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import {
  type Era,
  type InexactNumber,
  inexactIn,
  inexactNumber,
  type LogLevel,
  markInexact,
  readJson,
  type RefusedJson,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { PROTOCOL_VERSION_KEY, RPC, type Kernel, type KernelResult } from '#dispatcher';

/** Maximum nesting depth of objects and arrays; the message itself is the first level. */
const MAX_DEPTH = 20;

/** An id that is a number of more digits than a double holds: it is answered with all of them. */
export class ExactId {
  constructor(readonly literal: string) {}

  /** No id that JSON can hold is equal to it. */
  toJSON(): object {
    return { number: this.literal };
  }
}

const idText = (id: unknown): string => (id instanceof ExactId ? id.literal : JSON.stringify(id ?? null));

/** An id as records show it: text where it is one of more digits than a double holds. */
export const toShownId = (id: unknown): unknown => (id instanceof ExactId ? id.literal : (id ?? null));

export type BodyReading =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly fault: RefusedJson['fault'] };

/**
 * Reads a request body: one message, or several. An empty one is `{}`; bytes that are no UTF-8 are no JSON. A number that a double does not
 * hold is an `ExactId` where it names a request; elsewhere it marks what has to be refused (`inexactIn`).
 */
export function parseBody(body: Buffer): BodyReading {
  if (body.length === 0) return { ok: true, value: {} };
  if (!isUtf8(body)) return { ok: false, fault: 'syntax' };
  const reading = readJson(body.toString('utf8'), MAX_DEPTH);
  if (reading.ok) return reading;
  const { fault, numbers, value } = reading;
  if (value === undefined) return { ok: false, fault };
  for (const number of numbers) {
    const [first] = number.path;
    const isBatch = typeof first === 'number';
    markMessage(isBatch ? (value as unknown[])[first] : value, isBatch ? withoutFirst(number) : number);
  }
  return { ok: true, value };
}

const withoutFirst = ({ path, literal }: InexactNumber): InexactNumber => ({ path: path.slice(1), literal });

/** The arguments of a call are refused by their gate, for a model to read; any other member makes the params refused. */
function markMessage(message: unknown, { path, literal }: InexactNumber): void {
  if (!isJsonObject(message)) return;
  const [of, name] = path as [string, string | undefined];
  const { method, params } = message;
  const changed = message as { id?: unknown; params?: unknown };
  const at = path.join('.');
  if (at === 'id') changed.id = new ExactId(literal);
  else if (method === 'notifications/cancelled' && at === 'params.requestId' && isJsonObject(params))
    changed.params = { ...params, requestId: new ExactId(literal) };
  else {
    const args = method === 'tools/call' && name === 'arguments' ? member(params, 'arguments') : undefined;
    const inPart = of === 'params' || of === 'result';
    const part = of === 'result' ? message.result : params;
    if (!isJsonObject(part)) changed.params = {};
    const marked = isJsonObject(args) ? args : isJsonObject(part) ? part : (changed.params as object);
    markInexact(marked, inexactNumber({ path: inPart ? path.slice(1) : path, literal }));
  }
}

/** A JSON-RPC message whose outer form has been checked. */
export interface Message {
  /** Empty for a posted response. */
  readonly method: string;
  readonly params: unknown;
  /** As sent: text, a number, an `ExactId`, a truth value or null; `undefined` when the message has none. */
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
  if (typeof id === 'object' && id !== null && !(id instanceof ExactId)) return null;
  if (!('method' in value) && 'id' in value && ('result' in value || 'error' in value)) {
    const { result } = value;
    const inexact = inexactIn(result);
    const error = inexact === undefined ? value.error : { code: RPC.invalidParams, message: inexact };
    const kept = inexact === undefined ? result : undefined;
    return { method: '', params, id, jsonrpc, isResponse: true, result: kept, error };
  }
  if (typeof method !== 'string' || method === '') return null;
  return { method, params, id, jsonrpc, isResponse: false };
}

/** Whether the sender expects no answer. */
export function isNotification({ method, id }: Message): boolean {
  return method.startsWith('notifications/') && (id === undefined || id === null);
}

/** The protocol version in the body; `undefined` when there is none. */
export function readClaimedVersion({ params }: Message): unknown {
  return member(member(params, '_meta'), PROTOCOL_VERSION_KEY);
}

/** Several messages, none of which opens a session or belongs to another era; `null` when one is of another kind. */
export function readBatch(values: readonly unknown[], limit: number): Message[] | null {
  if (values.length === 0 || values.length > limit) return null;
  const messages: Message[] = [];
  for (const value of values) {
    const message = readMessage(value);
    if (message?.jsonrpc !== '2.0' || message.method === 'initialize') return null;
    if (readClaimedVersion(message) !== undefined) return null;
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
export const ACCEPTED_REPLY: Reply = Object.freeze(reply(202, ''));
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
  const body = `{"jsonrpc":"2.0","id":${idText(id)},"error":${JSON.stringify(error)}}`;
  return reply(status, body, headers);
}

/** A result as an HTTP answer. */
export function resultReply(
  id: unknown,
  known: KernelResult,
  headers?: Readonly<Record<string, string>>,
): Reply {
  const head = `{"jsonrpc":"2.0","id":${idText(id)}`;
  const { envelopeTail } = known;
  return envelopeTail
    ? { status: 200, body: head, tail: envelopeTail, headers }
    : { status: 200, body: `${head},"result":${JSON.stringify(known.result)}}`, headers };
}
