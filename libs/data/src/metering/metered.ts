import type { DataMeter, DataOperation } from '#agent';

/** Waits until the principal of the call may ask the database. */
export type Turn = <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** What every operation of one call goes through. */
export interface Metering {
  /** Absent where nothing is measured. */
  readonly meter?: DataMeter | undefined;
  /** Absent where nobody else asks. */
  readonly turn?: Turn | undefined;
}

/** Runs one operation in its turn and under a meter; waiting is part of its time, and one that fails took its time all the same. */
export async function metered<T>(
  { meter, turn }: Metering,
  operation: DataOperation & { readonly signal: AbortSignal },
  work: () => Promise<T>,
  rowsOf: (result: T) => number,
): Promise<T> {
  const { name, className, signal } = operation;
  const ends = meter?.begins({ name, className });
  try {
    const result = await (turn ? turn(work, signal) : work());
    ends?.(rowsOf(result));
    return result;
  } catch (fault) {
    ends?.(0, fault);
    throw fault;
  }
}
