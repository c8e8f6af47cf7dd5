import { Inject, Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import {
  type Agent,
  type AgentDefinition,
  type BudgetStore,
  type BudgetVerdict,
  type DataBudget,
  type DataMeter,
  type DataUse,
  failureDelay,
  type Quantity,
  refusals,
  Refused,
  findRootAgent,
  findTenant,
  refuse,
} from '#core';
import { SharedState } from '#state';

/* What a call may use: time, data of its budgets, and bytes of text. */

/** The time of a call, and its timeout. It pauses while the call waits for a person or another program. */
export class CallClock {
  private remaining = 0;
  private since = 0;
  private waiting = 0;
  private waitingSince = 0;
  private waitedBefore = 0;
  private timer: NodeJS.Timeout | undefined = undefined;
  private expire: (() => void) | undefined = undefined;

  /** @param milliseconds until `expired` is called, without the waiting time */
  start(milliseconds: number, expired: () => void): void {
    this.remaining = milliseconds;
    this.expire = expired;
    if (this.waiting === 0) this.run();
  }

  /** Milliseconds for which the call has waited for a person or another program. */
  get waited(): number {
    return this.waitedBefore + (this.waiting > 0 ? performance.now() - this.waitingSince : 0);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.expire = undefined;
  }

  /** Waits for work that is not part of the run. */
  async suspended<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting++ === 0) {
      this.waitingSince = performance.now();
      this.halt();
    }
    try {
      return await work();
    } finally {
      if (--this.waiting === 0) {
        this.waitedBefore += performance.now() - this.waitingSince;
        this.run();
      }
    }
  }

  private run(): void {
    const { expire } = this;
    if (!expire) return;
    this.since = performance.now();
    this.timer = setTimeout(expire, this.remaining);
  }

  private halt(): void {
    if (!this.expire) return;
    clearTimeout(this.timer);
    this.remaining = Math.max(0, this.remaining - (performance.now() - this.since));
  }
}

/** The data use of one call so far. */
export class CallMeter implements DataMeter {
  /** The start time of each running operation. */
  private readonly running = new Map<object, number>();
  /** The classes that the call reached from others. */
  readonly joined = new Set<string>();
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

  reaches(className: string): void {
    this.joined.add(className);
  }

  /**
   * Returns the sum. An operation that was aborted may still run: its time until now counts, and later time does not.
   */
  settle(bytes: number): Omit<DataUse, 'calls'> {
    for (const began of this.running.values()) this.databaseTime += this.now() - began;
    this.running.clear();
    return { rows: this.rows, bytes, databaseTime: this.databaseTime };
  }
}

/** The account that is charged, and its limits. */
export interface BudgetAccount {
  readonly name: string;
  readonly budget: DataBudget;
}

/** One call that is charged to data budgets. */
export class BudgetedCall extends CallMeter {
  constructor(
    readonly accounts: readonly BudgetAccount[],
    now?: () => number,
  ) {
    super(now);
  }
}

/** The budget of the tenant of an agent; null: none. */
export interface TenantBudgets {
  of(agent: Agent): { readonly tenantBudget: DataBudget | null };
}

/** Names the budget of an agent's tenant: the policies, which a simulation replaces. */
export const TENANT_BUDGETS = Symbol('budgets of tenants');

type Charge = Omit<DataUse, 'calls'>;

/** Maximum number of accounts whose last charges could not be written. */
const MAX_DEBTORS = 10_000;

/**
 * Checks and charges the data budgets of a call in the budget store. It refuses a call when a budget is used up or the
 * store cannot be read. It charges the use when it is known, so that concurrent calls may together exceed a limit.
 */
@Injectable()
export class DataBudgets {
  private readonly logger = new Logger(DataBudgets.name);
  /** Charges that the store did not accept. They are written before the account is admitted again. */
  private readonly pendingCharges = new LRUCache<string, Charge>({ max: MAX_DEBTORS });

  private readonly store: BudgetStore;

  /** @param policies name the budget of an agent's tenant, over all agents that are bound to it */
  constructor(
    @Inject(SharedState) { budgets }: Pick<SharedState, 'budgets'>,
    @Inject(TENANT_BUDGETS) private readonly policies: TenantBudgets,
  ) {
    this.store = budgets;
  }

  /** @returns null when no budget limits this agent */
  open(agent: Agent): BudgetedCall | null {
    const { definition, principal } = findRootAgent(agent);
    const { tenantBudget } = this.policies.of(agent);
    const tenant = tenantBudget && findTenant(agent);
    const accounts: BudgetAccount[] = [];
    if (definition.budget)
      accounts.push({ name: nameAccount(definition.name, principal), budget: definition.budget });
    if (tenantBudget && tenant !== null)
      accounts.push({ name: JSON.stringify(['tenant', tenant]), budget: tenantBudget });
    return accounts.length === 0 ? null : new BudgetedCall(accounts);
  }

  /**
   * @param counts false for the run of a call that was counted earlier
   * @throws Refused when an account is used up; after a store failure it refuses for a random time
   */
  async admit({ accounts }: BudgetedCall, counts = true): Promise<void> {
    for (const account of accounts) {
      let verdict;
      try {
        await this.payDebt(account);
        verdict = await this.store.admit(account.name, account.budget, counts);
      } catch (error) {
        throw new Refused({
          ...refusals.budgetExhausted(asExhausted(account.budget)),
          cause: `the budget could not be counted: ${String(error)}`,
        });
      }
      if (verdict) throw refuse.budgetExhausted(verdict);
    }
  }

  /** Never throws: the result exists already, and a failed charge is kept for later. */
  async charge({ accounts }: BudgetedCall, use: Charge): Promise<void> {
    if (use.rows === 0 && use.bytes === 0 && use.databaseTime === 0) return;
    for (const account of accounts) {
      try {
        await this.store.charge(account.name, account.budget, use);
      } catch (error) {
        this.logger.error(`a call could not be charged yet: ${String(error)}`);
        this.owe(account.name, use);
      }
    }
  }

  /** How much of its budget a caller of an agent has used; null: it has none. @throws when the store cannot be read */
  async readUse({ name, budget }: AgentDefinition, principal: string): Promise<DataUse | null> {
    return budget && this.store.readUse(nameAccount(name, principal), budget);
  }

  private async payDebt({ name, budget }: BudgetAccount): Promise<void> {
    const pendingCharge = this.pendingCharges.get(name);
    if (!pendingCharge) return;
    this.pendingCharges.delete(name);
    try {
      await this.store.charge(name, budget, pendingCharge);
    } catch (error) {
      this.owe(name, pendingCharge);
      throw error;
    }
  }

  private owe(name: string, use: Charge): void {
    const before = this.pendingCharges.get(name) ?? { rows: 0, bytes: 0, databaseTime: 0 };
    this.pendingCharges.set(name, {
      rows: before.rows + use.rows,
      bytes: before.bytes + use.bytes,
      databaseTime: before.databaseTime + use.databaseTime,
    });
  }
}

const nameAccount = (agent: string, principal: string) => JSON.stringify(['agent', agent, principal]);

/** One meter that reports to both; undefined when neither exists. */
export function meters(
  one: DataMeter | null | undefined,
  other: DataMeter | null | undefined,
): DataMeter | undefined {
  if (!one || !other) return one ?? other ?? undefined;
  return {
    begins: (operation) => {
      const [endsOne, endsOther] = [one.begins(operation), other.begins(operation)];
      return (rows, error) => {
        endsOne(rows, error);
        endsOther(rows, error);
      };
    },
    reaches: (className) => {
      one.reaches?.(className);
      other.reaches?.(className);
    },
  };
}

/** Of a budget that cannot be counted at the moment: nobody can tell it from one that is used up. */
function asExhausted({ limits, window }: DataBudget): BudgetVerdict {
  const [quantity = 'calls', limit = 0] = (Object.entries(limits) as [Quantity, number][])[0] ?? [];
  return { quantity, limit, window, retryAfter: failureDelay() };
}

/** Injection token: maximum bytes of the text of a result, for agents that have none of their own. */
export const MAX_RESULT_BYTES = Symbol('maximum bytes of a result');

/** How much text an agent receives at once: the result of a tool, a prompt, or a resource. */
@Injectable()
export class ResultLimit {
  constructor(@Inject(MAX_RESULT_BYTES) private readonly bytes: number) {}

  /** In bytes. */
  for({ definition }: Pick<Agent, 'definition'>): number {
    return definition.maxResultBytes ?? this.bytes;
  }

  /** The limit of the agent where the texts exceed it together; null: they do not. */
  exceededBy(texts: readonly string[], agent: Pick<Agent, 'definition'>): number | null {
    const limit = this.for(agent);
    return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) > limit ? limit : null;
  }
}
