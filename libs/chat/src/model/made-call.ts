import type { JsonObject } from '#core';

/** A call that the model requested, with its result. */
export interface MadeCall {
  /** Name of the tool. */
  readonly name: string;
  /** Null: the model did not write a JSON object, and nothing was called. */
  readonly arguments: JsonObject | null;
  /** The text that the model received, without the marker. */
  readonly result: string;
  /** Whether the call was refused or failed. */
  readonly failed: boolean;
}
