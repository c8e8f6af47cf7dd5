import { IntrinsicException } from '@nestjs/common';

/** JSON-RPC codes that cross the wire. */
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
  /** The client did not declare what answering the call needs of it. */
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/**
 * A protocol-level "no": becomes a JSON-RPC error. The message is told to the client.
 * `status` is the HTTP status in the stateless era; the legacy era answers 200.
 */
export class ProtocolFault extends IntrinsicException {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'ProtocolFault';
  constructor(
    /** Of JSON-RPC. */
    readonly code: number,
    message: string,
    /** Told with it. Default nothing. */
    readonly data?: unknown,
    /** Of HTTP. Default 200. */
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

/** A request header that should mirror the body and does not. */
export function headerMismatch(header: string): ProtocolFault {
  return new ProtocolFault(
    RPC.headerMismatch,
    `Header mismatch: ${header} does not mirror the body`,
    undefined,
    400,
  );
}
