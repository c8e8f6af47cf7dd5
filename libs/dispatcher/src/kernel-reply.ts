import type { JsonObject } from './json-object.js';

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface KernelResult {
  readonly result: JsonObject;
  /** `result` already serialised, where the same bytes are sent often. */
  readonly rawResult?: SerialisedJson;
}

export interface SerialisedJson {
  readonly text: string;
  /** Of `text` in UTF-8. */
  readonly bytes: number;
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
  readonly rawResult: SerialisedJson;
  constructor(readonly result: JsonObject) {
    const text = JSON.stringify(result);
    this.rawResult = { text, bytes: Buffer.byteLength(text) };
  }
}
