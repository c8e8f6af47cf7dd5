import type { DataMeter } from '#agent';

/** Runs one operation under a meter; one that fails took its time all the same. */
export async function metered<T>(
  meter: DataMeter,
  work: () => Promise<T>,
  rowsOf: (result: T) => number,
): Promise<T> {
  const ends = meter.begins();
  let rows = 0;
  try {
    const result = await work();
    rows = rowsOf(result);
    return result;
  } finally {
    ends(rows);
  }
}
