import type { DataMeter, DataOperation } from '#agent';

/** Runs one operation under a meter; one that fails took its time all the same. */
export async function metered<T>(
  meter: DataMeter,
  operation: DataOperation,
  work: () => Promise<T>,
  rowsOf: (result: T) => number,
): Promise<T> {
  const ends = meter.begins(operation);
  try {
    const result = await work();
    ends(rowsOf(result));
    return result;
  } catch (fault) {
    ends(0, fault);
    throw fault;
  }
}
