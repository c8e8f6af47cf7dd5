import type { DataBudget } from '#agent';
import { CallMeter } from './call-meter.js';

/** Who pays, and how much it may spend. */
export interface BudgetAccount {
  readonly name: string;
  readonly budget: DataBudget;
}

/** One call that data budgets pay for. */
export class BudgetedCall extends CallMeter {
  constructor(
    readonly accounts: readonly BudgetAccount[],
    now?: () => number,
  ) {
    super(now);
  }
}
