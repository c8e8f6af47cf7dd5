import type { DataMeter, DataUse } from '#agent';

/** What one call has used of the data so far. */
export class CallMeter implements DataMeter {
  /** When each operation that still runs began. */
  private readonly running = new Map<object, number>();
  private rows = 0;
  private databaseTime = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  begins(): (rows: number) => void {
    const operation = {};
    this.running.set(operation, this.now());
    return (rows) => {
      const began = this.running.get(operation);
      if (began === undefined) return;
      this.running.delete(operation);
      this.rows += rows;
      this.databaseTime += this.now() - began;
    };
  }

  /** The sum. An operation that was cut off has not ended yet: it took its time until now, and no more is asked. */
  settle(bytes: number): Omit<DataUse, 'calls'> {
    for (const began of this.running.values()) this.databaseTime += this.now() - began;
    this.running.clear();
    return { rows: this.rows, bytes, databaseTime: this.databaseTime };
  }
}
