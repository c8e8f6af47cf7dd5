import type { ParseRow } from '#data';
import type { TextColumn } from './text-formats.js';

type Envelope = Readonly<Record<string, unknown>>;

/** The rows behind the text of a result: a text that is too large is written again from fewer of them. */
export interface TextOfRows {
  readonly rows: readonly ParseRow[];
  readonly columns: readonly TextColumn[];
  /** The result with the first rows alone, and how to go on. @param kept fewer than there are */
  build(kept: number): Envelope;
}

const behind = new WeakMap<object, TextOfRows>();

export function withTextOfRows<Result extends Envelope>(result: Result, text: TextOfRows): Result {
  behind.set(result, text);
  return result;
}

export const findTextOfRows = (result: object): TextOfRows | undefined => behind.get(result);
