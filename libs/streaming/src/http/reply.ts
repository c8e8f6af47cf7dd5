import type { KernelResult } from '#dispatcher';

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
