import { Test } from '@nestjs/testing';
import { Parley, ParleyModule } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import { createTestingApplication, type TestingApplication } from '@parley/testing';
import { BillingModule } from './invoices.js';

const agents = { clerk: { permissions: 'readonly' } } as const;

describe('invoices', () => {
  let parley: TestingApplication;
  beforeAll(async () => {
    parley = await createTestingApplication({ seed: 'seed.json', agents, imports: [BillingModule] });
  });
  afterAll(() => parley.close());

  it('are listed by a tool of the application', async () => {
    const { data } = await parley
      .as('clerk')
      .call('overdue_invoices', { before: '2026-03-01T00:00:00.000Z' });
    expect(data).toEqual({ invoices: ['2026-1', '2026-2'] });
  });

  it('show no margin', async () => {
    const secret = { class_name: 'Invoice', where: { margin: 31 } };
    await parley.as('clerk').expectRefused('field_denied', 'fields', 'query_class', secret);
  });
});

describe('an application with the module', () => {
  it('answers in a test of its own, and logs the call', async () => {
    const module = await Test.createTestingModule({
      imports: [ParleyModule.forRoot({ agents, database: { seed: 'seed.json' } }), BillingModule],
    }).compile();
    const lines: string[] = [];
    const write = (line: unknown) => void lines.push(String(line));
    module.useLogger({ log: write, warn: write, error: write });
    await module.init();
    try {
      const instance = module.get(Parley);
      const call = { name: 'count_objects', arguments: { class_name: 'Invoice' } };
      const { body } = await instance.handle(
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
        instance.agentFor({ agent: 'clerk', principal: 'ann' }),
      );
      expect(body).toMatchObject({ result: { structuredContent: { count: 3 } } });
      expect(lines).toContainEqual(expect.stringMatching(/^call tool=count_objects /));
    } finally {
      await module.close();
    }
  });

  it('finds the subpath', () => {
    expect(typeof declareClasses).toBe('function');
  });
});
