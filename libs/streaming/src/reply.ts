import { RPC } from '#dispatcher';

/** An HTTP answer, whole. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Besides `Content-Type` and `Content-Length`. */
  readonly headers?: Readonly<Record<string, string>>;
}

const NO_BODY = '';

export function reply(status: number, body: string, headers?: Record<string, string>): Reply {
  return { status, body, ...(headers && { headers }) };
}

/** Taken, and nothing to say. */
export const ACCEPTED: Reply = Object.freeze(reply(202, NO_BODY));
export const NO_CONTENT: Reply = Object.freeze(reply(204, NO_BODY));

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
  headers?: Record<string, string>,
): Reply {
  const body = JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error });
  return reply(status, body, headers);
}

/** A result that is serialised already. */
export function rawResultReply(id: unknown, rawResult: string, headers?: Record<string, string>): Reply {
  return reply(200, `{"jsonrpc":"2.0","id":${JSON.stringify(id ?? null)},"result":${rawResult}}`, headers);
}

export function internalErrorReply(id: unknown = null, status = 500): Reply {
  return errorReply(status, { code: RPC.internalError, message: 'Internal error' }, id);
}
