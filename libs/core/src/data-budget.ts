import { MIN_RETRY_AFTER } from './limits.js';

/** The data and database time that a call used. */
export interface DataUse {
  readonly calls: number;
  /** Rows that the database returned, before any was withheld. */
  readonly rows: number;
  /** Of the results sent. */
  readonly bytes: number;
  /** Milliseconds from the start to the end of the database operations, measured in this process. */
  readonly databaseTime: number;
}

export const QUANTITIES = ['calls', 'rows', 'bytes', 'databaseTime'] as const;
export type Quantity = (typeof QUANTITIES)[number];

/** A budget as written in the configuration. Quantities that are left out are not limited. */
export interface BudgetOptions extends Partial<DataUse> {
  /** Seconds. Default 3600. */
  readonly window?: number;
}

/** Seconds. */
export const DEFAULT_BUDGET_WINDOW = 3600;

/** How much of each quantity may be used per window. */
export interface DataBudget {
  readonly window: number;
  readonly limits: Readonly<Partial<Record<Quantity, number>>>;
}

/** A quantity that is exhausted. */
export interface BudgetVerdict {
  readonly quantity: Quantity;
  readonly limit: number;
  readonly window: number;
  /** Seconds, at least 0.1, until some of it is available again. */
  readonly retryAfter: number;
}

/**
 * Stores what each account used. The window slides in steps of a twentieth, so that a use counts for its window and at most
 * one step more.
 */
export abstract class BudgetStore {
  /**
   * Counts a call that starts, unless a quantity is exhausted. A refused call is not counted.
   * @param counts false for a later run of a call that was counted already: the limit of calls is not checked again
   * @throws when the store cannot be read: the caller refuses the call
   */
  abstract admit(account: string, budget: DataBudget, counts?: boolean): Promise<BudgetVerdict | null>;
  /** Adds what a finished call used. @throws as `admit` */
  abstract charge(account: string, budget: DataBudget, use: Partial<DataUse>): Promise<void>;
  /** What counts in the current window. */
  abstract readUse(account: string, budget: DataBudget): Promise<DataUse>;
}

/** Steps of a window. */
export const BUDGET_STEPS = 20;

/** @throws TypeError for a budget that limits nothing */
export function compileBudget(options: BudgetOptions | null | undefined): DataBudget | null {
  if (options === null || options === undefined) return null;
  const { window = DEFAULT_BUDGET_WINDOW, ...limits } = options;
  const given = Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined));
  if (Object.keys(given).length === 0) throw new TypeError(`budget: needs one of ${QUANTITIES.join(', ')}`);
  return Object.freeze({ window, limits: Object.freeze(given) });
}

export function denyExhausted(budget: DataBudget, quantity: Quantity, retryAfter: number): BudgetVerdict {
  const limit = budget.limits[quantity] ?? 0;
  return { quantity, limit, window: budget.window, retryAfter: Math.max(retryAfter, MIN_RETRY_AFTER) };
}
