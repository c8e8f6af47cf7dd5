import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  Agent,
  type BudgetStore,
  compileAgentDefinition,
  compileBudget,
  deriveAgent,
  type Refusal,
  Refused,
} from '#core';
import { ProcessBudgetStore, SharedStateUnavailable } from '#state';
import { BudgetedCall, DataBudgets } from './call-limits.js';

const definition = compileAgentDefinition('analyst', { budget: { rows: 10, window: 60 } });
const root = (principal = 'ada', tenantId: string | null = null) =>
  new Agent({ definition, principal, tenantId });
const used = (rows: number) => ({ rows, bytes: 1, databaseTime: 1 });

async function toRefusal(budgets: DataBudgets, agent: Agent): Promise<Refusal | null> {
  const call = budgets.open(agent);
  if (!call) throw new TypeError('nothing limits this agent');
  const error = await budgets.admit(call).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error === null) return null;
  expect(error).toBeInstanceOf(Refused);
  return (error as Refused).refusal;
}

async function spend(budgets: DataBudgets, agent: Agent, rows: number): Promise<void> {
  const call = budgets.open(agent);
  if (call) await budgets.charge(call, used(rows));
}

describe('the data budgets of a call', () => {
  let budgets: DataBudgets;
  beforeEach(() => {
    const tenantBudget = compileBudget({ rows: 100, window: 60 });
    budgets = new DataBudgets({ budgets: new ProcessBudgetStore() }, { of: () => ({ tenantBudget }) });
  });

  it('are none where neither the agent nor its tenant has one', () => {
    const free = new Agent({ definition: compileAgentDefinition('free'), principal: 'p' });
    expect(budgets.open(free)).toBeNull();
  });

  it('refuse the next call once something is used up, and say what and for how long', async () => {
    expect(await toRefusal(budgets, root())).toBeNull();
    await spend(budgets, root(), 10);
    const refusal = await toRefusal(budgets, root());
    expect(refusal).toMatchObject({
      code: 'rate_limited',
      gate: 'budget',
      details: { kind: 'budget' },
      message: expect.stringMatching(
        /^Data budget exhausted \(10 rows per 60s\)\. Retry after \d+\.\ds$/,
      ) as string,
    });
    expect(refusal?.retryAfter).toBeGreaterThanOrEqual(0.1);
    expect(await toRefusal(budgets, root('bob'))).toBeNull();
  });

  it('of a sub-agent are those of the agent at its root, whatever it is called', async () => {
    const child = deriveAgent(deriveAgent(root(), { name: 'fresh' }), { name: 'fresher', rateLimit: 1 });
    await spend(budgets, child, 10);
    expect(await toRefusal(budgets, root())).toMatchObject({ gate: 'budget' });
    expect(await toRefusal(budgets, deriveAgent(root(), { name: 'freshest' }))).toMatchObject({
      gate: 'budget',
    });
  });

  it('of a tenant are spent by all agents that are bound to it, and by no other tenant', async () => {
    const other = compileAgentDefinition('other', { tenantId: 'acme' });
    await spend(budgets, new Agent({ definition: other, principal: 'x' }), 60);
    await spend(budgets, new Agent({ definition: other, principal: 'y' }), 60);
    expect(await toRefusal(budgets, root('ada', 'acme'))).toMatchObject({
      message: expect.stringContaining('100 rows') as string,
    });
    expect(await toRefusal(budgets, root('ada', 'zeta'))).toBeNull();
  });

  it('identify a tenant by its exact value: no name of an agent and no number is another tenant', async () => {
    const bound = (tenantId: string | number) => new Agent({ definition, principal: 'p', tenantId });
    await spend(budgets, bound(7), 100);
    const asText = new Agent({ definition: compileAgentDefinition('x', { tenantId: '7' }), principal: 'q' });
    expect(await toRefusal(budgets, asText)).toBeNull();
  });

  describe('while the store is away', () => {
    let away = true;
    beforeEach(() => {
      const store = new ProcessBudgetStore();
      const failing: BudgetStore = {
        admit: (...args) =>
          away ? Promise.reject(new SharedStateUnavailable('redis')) : store.admit(...args),
        charge: (...args) =>
          away ? Promise.reject(new SharedStateUnavailable('redis')) : store.charge(...args),
        readUse: (...args) => store.readUse(...args),
      };
      budgets = new DataBudgets({ budgets: failing }, { of: () => ({ tenantBudget: null }) });
      vi.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    });
    afterEach(() => vi.restoreAllMocks());

    it('refuse in the words of a used-up budget, for a random while of one to five seconds', async () => {
      away = true;
      const waits = new Set<number | undefined>();
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const refusal = await toRefusal(budgets, root());
        expect(refusal).toMatchObject({ code: 'rate_limited', details: { kind: 'budget' } });
        const { cause, ...sent } = refusal ?? {};
        expect(JSON.stringify(sent)).not.toMatch(/redis|state/i);
        // Records and the line of the call say why; it is never sent.
        expect(cause).toMatch(/^the budget could not be counted: SharedStateUnavailable/);
        expect(refusal?.retryAfter).toBeGreaterThanOrEqual(1);
        expect(refusal?.retryAfter).toBeLessThanOrEqual(5);
        waits.add(refusal?.retryAfter);
      }
      expect(waits.size).toBeGreaterThan(1);
    });

    it('forgive nothing: what could not be charged is charged before the next call', async () => {
      away = true;
      await spend(budgets, root(), 6);
      await spend(budgets, root(), 6);
      expect(await toRefusal(budgets, root())).not.toBeNull();
      away = false;
      expect(await toRefusal(budgets, root())).toMatchObject({ gate: 'budget' });
      expect(await toRefusal(budgets, root('bob'))).toBeNull();
    });
  });
});

describe('a call that a budget pays for', () => {
  it('has used the rows and the time of its operations, also of one that was cut off, and no more afterwards', () => {
    let now = 0;
    const call = new BudgetedCall([], () => now);
    const first = call.begins();
    now = 10;
    first(3);
    first(3);
    const cutOff = call.begins();
    now = 15;
    expect(call.settle(70)).toEqual({ rows: 3, bytes: 70, databaseTime: 15 });
    now = 99;
    cutOff(1000);
    expect(call.settle(70)).toEqual({ rows: 3, bytes: 70, databaseTime: 15 });
  });
});
