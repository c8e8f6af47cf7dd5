import { IntrinsicException } from '@nestjs/common';
import { oneLine } from '#audit';

/** JSON-RPC error codes of answers. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** Busy, too many requests. */
  busy: -32000,
  unauthorized: -32001,
  /** Revisions up to 2025-11-25 only. */
  resourceNotFound: -32002,
  headerMismatch: -32020,
  /** The client did not declare a capability that the answer to the call needs. */
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/**
 * A protocol error: it becomes a JSON-RPC error. The client receives the message.
 * `status` is the HTTP status in the stateless era; the legacy era answers 200.
 */
export class ProtocolFault extends IntrinsicException {
  /** The same across two copies of the package. */
  override readonly name = 'ProtocolFault';
  constructor(
    /** JSON-RPC error code. */
    readonly code: number,
    message: string,
    /** Sent with the error. Default none. */
    readonly data?: unknown,
    /** HTTP status. Default 200. */
    readonly status = 200,
  ) {
    super(message);
  }
}

export function invalidParams(message = 'Invalid params', data?: unknown): ProtocolFault {
  return new ProtocolFault(RPC.invalidParams, message, data);
}

export function methodNotFound(method: string): ProtocolFault {
  return new ProtocolFault(RPC.methodNotFound, `Method not found: ${method}`, undefined, 404);
}

/** A request header that must mirror the body and does not. */
export function headerMismatch(header: string): ProtocolFault {
  return new ProtocolFault(
    RPC.headerMismatch,
    `Header mismatch: ${header} does not mirror the body`,
    undefined,
    400,
  );
}

/** Log of internal causes. One line per call; never sent to a client. */
export interface WarningLog {
  warn(message: string): void;
}

/** Class and message of any thrown value, for the log alone. */
export function faultLine(prefix: string, error: unknown): string {
  if (!(error instanceof Error)) return `${prefix} ${oneLine(typeof error)}`;
  return `${prefix} ${oneLine(error.name)}: ${oneLine(error.message)}`;
}
