import 'reflect-metadata';
import { createTestingApplication, policyMatrix, refused, type TestingApplication } from '@parley/testing';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { agents, policy } from './app.module.js';

let parley: TestingApplication;
beforeAll(async () => {
  const seed = fileURLToPath(new URL('../seed.json', import.meta.url));
  parley = await createTestingApplication({ seed, policy, agents, gates: 'open' });
});
beforeEach(() => parley.reset());
afterAll(() => parley.close());

/** As a token of that organisation leads to it. */
const of = (organisation: string, agent: keyof typeof agents = 'reader') =>
  parley.as(agent, { tenantId: organisation, role: 'agents' });

describe('an organisation', () => {
  it('reads its own invoices and no others', async () => {
    const { data: acme } = await of('acme').call('count_objects', { class_name: 'Invoice' });
    const { data: globex } = await of('globex').call('count_objects', { class_name: 'Invoice' });
    expect([acme['count'], globex['count']]).toEqual([2, 1]);
  });

  it('gets nothing of another, whatever it asks', () =>
    policyMatrix(parley, {
      agents: { acme: of('acme'), globex: of('globex') },
      rows: [
        {
          call: ['query_class', { class_name: 'Invoice', where: { org: 'globex' } }],
          acme: refused('tenant_scope', 'tenant'),
          // Nobody may ask for the column, not even by the own name.
          globex: refused('field_denied', 'fields'),
        },
        {
          call: ['get_object', { class_name: 'Invoice', object_id: 'g1' }],
          acme: refused('tenant_scope', 'tenant'),
          globex: 'allowed',
        },
      ],
    }));

  it('does not see a customer of another behind a pointer of its own', async () => {
    const included = { class_name: 'Invoice', object_id: 'a2', include: ['customer'] };
    const { text } = await of('acme').call('get_object', included);
    expect(text).not.toContain('Secret customer');
  });

  it('writes into itself alone', async () => {
    const clerk = of('acme', 'clerk');
    await clerk.call('create_object', { class_name: 'Invoice', fields: { number: 'A-3' } });
    const rows = await parley.ungoverned.find('Invoice', { number: 'A-3' });
    expect(rows.map(({ org }) => org)).toEqual(['acme']);
    const elsewhere = { class_name: 'Invoice', fields: { number: 'A-4', org: 'globex' } };
    await clerk.expectRefused('tenant_scope', 'tenant', 'create_object', elsewhere);
  });
});
