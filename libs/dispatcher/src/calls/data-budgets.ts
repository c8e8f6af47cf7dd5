import { Logger } from '@nestjs/common';
import {
  type Agent,
  type BudgetLedger,
  type DataBudget,
  type DataMeter,
  type DataUse,
  refusals,
  Refused,
} from '#core';

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

type Charge = Omit<DataUse, 'calls'>;

/** Accounts whose last charges could not be written, remembered at once. */
const MAX_DEBTORS = 10_000;

/**
 * Whose data budgets pay for a call, and the dealings with the ledger. A call is refused when something is used up or the
 * ledger cannot be read; what it used is charged when it is known, so that calls at the same time may together use more.
 */
export class DataBudgets {
  private readonly logger = new Logger(DataBudgets.name);
  /** What the ledger did not take: charged before the account is admitted again. */
  private readonly debts = new Map<string, Charge>();

  /** @param tenantBudget of the tenant of this agent, over all agents that are bound to it */
  constructor(
    private readonly ledger: BudgetLedger,
    private readonly tenantBudget: (agent: Agent) => DataBudget | null,
  ) {}

  /** @returns null when nothing limits what this agent may use */
  open(agent: Agent): BudgetedCall | null {
    const accounts = this.accountsOf(agent);
    return accounts.length === 0 ? null : new BudgetedCall(accounts);
  }

  /**
   * @param counts false for the run of a call that was counted when it was made
   * @throws Refused when an account is used up; a ledger that fails says no for a random while
   */
  async admit({ accounts }: BudgetedCall, counts = true): Promise<void> {
    for (const account of accounts) {
      let verdict;
      try {
        await this.payDebt(account);
        verdict = await this.ledger.admit(account.name, account.budget, counts);
      } catch (error) {
        this.logger.error(`the ledger of data budgets failed: ${String(error)}`);
        throw new Refused(refusals.limitUncountable('budget', 1 + Math.random() * 4));
      }
      if (verdict) throw new Refused(refusals.budgetExhausted(verdict));
    }
  }

  /** Never throws: the answer is there, and what could not be charged is owed. */
  async charge({ accounts }: BudgetedCall, use: Charge): Promise<void> {
    if (use.rows === 0 && use.bytes === 0 && use.databaseTime === 0) return;
    for (const account of accounts) {
      try {
        await this.ledger.charge(account.name, account.budget, use);
      } catch (error) {
        this.logger.error(`a call could not be charged yet: ${String(error)}`);
        this.owe(account.name, use);
      }
    }
  }

  private accountsOf(agent: Agent): BudgetAccount[] {
    const { shape, principal } = rootOf(agent);
    const { tenantId } = agent;
    const tenantBudget = tenantId === null ? null : this.tenantBudget(agent);
    const accounts: BudgetAccount[] = [];
    if (shape.budget) {
      accounts.push({ name: JSON.stringify(['agent', shape.name, principal]), budget: shape.budget });
    }
    if (tenantBudget) {
      accounts.push({ name: JSON.stringify(['tenant', tenantId]), budget: tenantBudget });
    }
    return accounts;
  }

  private async payDebt({ name, budget }: BudgetAccount): Promise<void> {
    const debt = this.debts.get(name);
    if (!debt) return;
    this.debts.delete(name);
    try {
      await this.ledger.charge(name, budget, debt);
    } catch (error) {
      this.owe(name, debt);
      throw error;
    }
  }

  private owe(name: string, use: Charge): void {
    const before = this.debts.get(name) ?? { rows: 0, bytes: 0, databaseTime: 0 };
    this.debts.delete(name);
    this.debts.set(name, {
      rows: before.rows + use.rows,
      bytes: before.bytes + use.bytes,
      databaseTime: before.databaseTime + use.databaseTime,
    });
    const oldest = this.debts.size > MAX_DEBTORS ? this.debts.keys().next().value : undefined;
    if (oldest !== undefined) this.debts.delete(oldest);
  }
}

/** A sub-agent spends what the agent at its root has, whatever it is called. */
function rootOf(agent: Agent): Agent {
  return agent.parent ? rootOf(agent.parent) : agent;
}

/** One meter that tells both; undefined when there is neither. */
export function meters(
  one: DataMeter | null | undefined,
  other: DataMeter | null | undefined,
): DataMeter | undefined {
  if (!one || !other) return one ?? other ?? undefined;
  return {
    begins: (operation) => {
      const [endsOne, endsOther] = [one.begins(operation), other.begins(operation)];
      return (rows, fault) => {
        endsOne(rows, fault);
        endsOther(rows, fault);
      };
    },
  };
}
