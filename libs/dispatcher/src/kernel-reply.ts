import type { JsonObject } from './json-object.js';

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface KernelResult {
  readonly result: JsonObject;
  /** Where the same result is sent often: what stands behind the id of its JSON-RPC envelope, as bytes. */
  readonly envelopeTail?: Buffer;
}

export interface KernelFailure {
  readonly error: RpcError;
  /** HTTP status a web transport answers with. */
  readonly status: number;
}

/** A notification was taken: nothing is answered. */
export interface KernelAcceptance {
  readonly accepted: true;
}

export type KernelReply = KernelResult | KernelFailure | KernelAcceptance;

/** A result that a handler has completed and serialised itself. */
export class PreparedResult implements KernelResult {
  readonly envelopeTail: Buffer;
  constructor(readonly result: JsonObject) {
    this.envelopeTail = Buffer.from(`,"result":${JSON.stringify(result)}}`);
  }
}
