import 'reflect-metadata';
import { createTestingApplication, type TestingApplication } from '@parley/testing';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CountingTools } from './counting.tools.js';
import { ItemRules } from './item.rules.js';
import { StockTools } from './stock.tools.js';

let parley: TestingApplication;
beforeAll(async () => {
  parley = await createTestingApplication({
    seed: fileURLToPath(new URL('../seed.json', import.meta.url)),
    policy: { requireApprovalFor: ['write', 'admin'] },
    agents: { visitor: { permissions: 'readonly' }, keeper: { permissions: 'write' } },
    tools: [ItemRules, CountingTools, StockTools],
    gates: 'open',
  });
});
beforeEach(() => parley.reset());
afterAll(() => parley.close());

const broken = { item: 'glass', pieces: 2, reason: 'fell down' };
const stockOf = async (item: string) => (await parley.ungoverned.get('Item', item))?.['stock'];

describe('the warehouse', () => {
  it('reports every shelf while it counts', async () => {
    const { data, progress } = await parley.as('visitor').call('recount');
    expect(data).toEqual({ pieces: 219 });
    expect(progress.map(({ message }) => message)).toEqual(['shelf A', 'shelf B', 'shelf C', 'shelf D']);
  });

  it('writes nothing off unless a person says yes', async () => {
    const keeper = parley.as('keeper');
    await keeper.expectRefused('approval_denied', 'approval', 'write_off', broken);
    keeper.deny();
    await keeper.expectRefused('approval_denied', 'approval', 'write_off', broken);
    expect(await stockOf('glass')).toBe(7);
    keeper.approve();
    expect((await keeper.call('write_off', broken)).data).toEqual({ item: 'glass', stock: 5 });
    expect(await stockOf('glass')).toBe(5);
  });

  it('cannot lose more than there is', async () => {
    const keeper = parley.as('keeper');
    keeper.approve();
    const attempt = await keeper.attempt('write_off', { ...broken, pieces: 8 });
    expect(attempt.allowed ? null : attempt.refusal.text).toContain('there are 7 pieces, not 8');
    expect(await stockOf('glass')).toBe(7);
  });

  it('lets no visitor write off', () =>
    parley.as('visitor').expectRefused('permission_denied', 'tier', 'write_off', broken));

  it('asks the person where an arrival goes, and takes no for an answer', async () => {
    const visitor = parley.as('visitor');
    const arrival = { name: 'Nail', pieces: 3 };
    visitor.answer({ action: 'accept', content: { shelf: 'C' } });
    expect((await visitor.call('ask_where', arrival)).data).toEqual({ name: 'Nail', shelf: 'C' });
    visitor.answer({ action: 'decline' });
    expect((await visitor.call('ask_where', arrival)).data).toEqual({ name: 'Nail', shelf: null });
    expect(visitor.questions).toHaveLength(2);
  });

  it('shows nobody what an item cost', () =>
    parley
      .as('keeper')
      .expectRefused('field_denied', 'fields', 'query_class', { class_name: 'Item', where: { cost: 18.5 } }));
});
