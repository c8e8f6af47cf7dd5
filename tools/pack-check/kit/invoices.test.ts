import 'reflect-metadata';
import { createTestingApplication } from '@parley/testing';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BillingModule } from './invoices.js';

void test('the clerk sees what is due, and no margin', async () => {
  const parley = await createTestingApplication({
    seed: 'seed.json',
    agents: { clerk: { permissions: 'readonly' } },
    imports: [BillingModule],
  });
  try {
    const clerk = parley.as('clerk');
    const { data } = await clerk.call('overdue_invoices', { before: '2026-03-01T00:00:00.000Z' });
    assert.deepEqual(data, { invoices: ['2026-1', '2026-2'] });
    await clerk.expectRefused('field_denied', 'fields', 'query_class', {
      class_name: 'Invoice',
      where: { margin: 31 },
    });
  } finally {
    await parley.close();
  }
});
