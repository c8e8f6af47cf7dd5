import {
  BUDGET_STEPS,
  BudgetStore,
  type BudgetVerdict,
  type DataBudget,
  type DataUse,
  exhausted,
  QUANTITIES,
  type Quantity,
} from '#core';
import { type Clock, ExpiringMap, processClock } from './expiring-map.js';

type Use = Record<Quantity, number>;

const nothing = (): Use => ({ calls: 0, rows: 0, bytes: 0, databaseTime: 0 });

/** What accounts used, in this process's memory: the counts are for this process only. */
export class ProcessBudgetStore extends BudgetStore {
  /** Per account, what it used in each step, oldest first. */
  private readonly accounts: ExpiringMap<Map<number, Use>>;

  /** @param maxAccounts accounts stored at once; the longest unused is removed first. Default 100,000 */
  constructor(
    maxAccounts = 100_000,
    private readonly now: Clock = processClock,
  ) {
    super();
    this.accounts = new ExpiringMap(maxAccounts, now);
  }

  admit(account: string, budget: DataBudget, counts = true): Promise<BudgetVerdict | null> {
    const steps = this.stepsOf(account, budget);
    const looked = counts ? QUANTITIES : QUANTITIES.filter((quantity) => quantity !== 'calls');
    const waits = looked.flatMap((quantity) => this.waitFor(quantity, steps, budget));
    const longest = waits.toSorted((a, b) => b.wait - a.wait)[0];
    if (longest) return Promise.resolve(exhausted(budget, longest.quantity, longest.wait / 1000));
    if (counts) this.add(account, budget, { calls: 1 });
    return Promise.resolve(null);
  }

  charge(account: string, budget: DataBudget, use: Partial<DataUse>): Promise<void> {
    this.add(account, budget, use);
    return Promise.resolve();
  }

  used(account: string, budget: DataBudget): Promise<DataUse> {
    const sum = nothing();
    for (const use of this.stepsOf(account, budget).values())
      for (const quantity of QUANTITIES) sum[quantity] += use[quantity];
    return Promise.resolve(sum);
  }

  /** Empty unless the quantity is exhausted; else the milliseconds until enough of it has left the window. */
  private waitFor(quantity: Quantity, steps: ReadonlyMap<number, Use>, budget: DataBudget) {
    const limit = budget.limits[quantity];
    let counted = [...steps.values()].reduce((sum, use) => sum + use[quantity], 0);
    if (limit === undefined || counted < limit) return [];
    for (const [step, use] of steps) {
      counted -= use[quantity];
      const wait = (step + 1) * stepLength(budget) + budget.window * 1000 - this.now();
      if (counted < limit) return [{ quantity, wait }];
    }
    return [];
  }

  private add(account: string, budget: DataBudget, use: Partial<DataUse>): void {
    const steps = this.stepsOf(account, budget);
    const step = Math.floor(this.now() / stepLength(budget));
    const counted = steps.get(step) ?? nothing();
    for (const quantity of QUANTITIES) counted[quantity] += Math.ceil(use[quantity] ?? 0);
    steps.set(step, counted);
    this.accounts.set(keyOf(account, budget), steps, budget.window * 1000 + stepLength(budget));
  }

  /** What counts in the current window. */
  private stepsOf(account: string, budget: DataBudget): Map<number, Use> {
    const steps = this.accounts.get(keyOf(account, budget)) ?? new Map<number, Use>();
    const oldest = Math.floor(this.now() / stepLength(budget)) - BUDGET_STEPS;
    for (const step of steps.keys()) if (step < oldest) steps.delete(step);
    return steps;
  }
}

/** Milliseconds. */
const stepLength = ({ window }: DataBudget) => (window * 1000) / BUDGET_STEPS;

/** Each account has its own window: after a change of its length, counting starts again. */
const keyOf = (account: string, { window }: DataBudget) => JSON.stringify([account, window]);
