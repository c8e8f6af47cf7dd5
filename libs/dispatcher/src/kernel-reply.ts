import type { JsonObject } from './json-object.js';

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** `rawResult` is `result` already serialised, where the same bytes are sent often. */
export interface KernelResult {
  readonly result: JsonObject;
  readonly rawResult?: string;
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
  readonly rawResult: string;
  constructor(readonly result: JsonObject) {
    this.rawResult = JSON.stringify(result);
  }
}
