import type { DataBudget, DataMeter, DataUse } from '#agent';

/** Who pays, and how much it may spend. */
export interface BudgetAccount {
  readonly name: string;
  readonly budget: DataBudget;
}

/** One call that data budgets pay for: what it has used so far. */
export class BudgetedCall implements DataMeter {
  /** When each operation that still runs began. */
  private readonly running = new Map<object, number>();
  private rows = 0;
  private databaseTime = 0;

  constructor(
    readonly accounts: readonly BudgetAccount[],
    private readonly now: () => number = () => performance.now(),
  ) {}

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

  /** What is to be paid. An operation that was cut off has not ended yet: it took its time until now, and no more is asked. */
  settle(bytes: number): Omit<DataUse, 'calls'> {
    for (const began of this.running.values()) this.databaseTime += this.now() - began;
    this.running.clear();
    return { rows: this.rows, bytes, databaseTime: this.databaseTime };
  }
}
