import { type KernelResult, RPC } from '#dispatcher';

/** An HTTP answer, whole. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Of `body` in UTF-8. */
  readonly bytes: number;
  /** Besides `Content-Type` and `Content-Length`. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export function reply(
  status: number,
  body: string,
  headers?: Readonly<Record<string, string>>,
  bytes = Buffer.byteLength(body),
): Reply {
  return { status, body, bytes, headers };
}

/** Taken, and nothing to say. */
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
  { result, rawResult }: KernelResult,
  headers?: Readonly<Record<string, string>>,
): Reply {
  const head = `{"jsonrpc":"2.0","id":${id === undefined ? 'null' : JSON.stringify(id)},"result":`;
  if (!rawResult) return reply(200, `${head}${JSON.stringify(result)}}`, headers);
  const bytes = Buffer.byteLength(head) + rawResult.bytes + 1;
  return reply(200, `${head}${rawResult.text}}`, headers, bytes);
}

export function internalErrorReply(id: unknown = null, status = 500): Reply {
  return errorReply(status, { code: RPC.internalError, message: 'Internal error' }, id);
}
