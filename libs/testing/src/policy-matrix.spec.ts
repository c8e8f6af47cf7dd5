import { AssertionError } from 'node:assert';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestingApplication, policyMatrix, refused, type TestingApplication } from '@parley/testing';
import { INVOICES } from './invoices.fixture.js';

let app: TestingApplication;
beforeAll(async () => {
  app = await createTestingApplication({ ...INVOICES, gates: 'open' });
});
beforeEach(() => app.reset());
afterAll(() => app.close());

const invoices = ['query_class', { class_name: 'Invoice' }] as const;
const payroll = ['query_class', { class_name: 'Payroll' }] as const;
const change = ['update_object', { class_name: 'Invoice', object_id: 'i1', fields: { total: 1 } }] as const;

async function failureOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => new Error('it passed'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AssertionError);
  return (error as AssertionError).message;
}

describe('a policy matrix', () => {
  it('holds when every cell does', async () => {
    await policyMatrix(app, {
      agents: ['clerk', 'guest', 'writer'],
      rows: [
        { call: invoices, clerk: 'allowed', guest: refused('class_filter', 'class'), writer: 'allowed' },
        {
          call: payroll,
          clerk: refused('hidden_class', 'class'),
          guest: refused('hidden_class', 'class'),
          writer: refused('hidden_class', 'class'),
        },
        {
          call: change,
          clerk: refused('permission_denied', 'tier'),
          guest: refused('permission_denied', 'tier'),
          writer: refused('approval_denied', 'approval'),
        },
      ],
    });
  });

  it('reports all wrong cells at once, each with the actual result', async () => {
    const message = await failureOf(
      policyMatrix(app, {
        agents: ['clerk', 'guest'],
        rows: [
          { call: invoices, clerk: refused('hidden_class', 'class'), guest: 'allowed' },
          {
            call: payroll,
            clerk: refused('hidden_class', 'tenant'),
            guest: refused('hidden_class', 'class'),
          },
          { call: ['breaks'], clerk: 'allowed', guest: refused('internal_error', 'handler') },
        ],
      }),
    );
    expect(message).toContain('4 of 6 cells are not as expected');
    expect(message).toMatch(/"Invoice"} as clerk\n {2}expected {2}to be refused[^]*allowed, and told/);
    expect(message).toMatch(/"Invoice"} as guest\n {2}expected {2}to be allowed[^]*class_filter/);
    expect(message).toMatch(/"Payroll"} as clerk[^]*by the gate 'class'/);
    expect(message).toMatch(/breaks {} as clerk[^]*is no refusal/);
    expect(message).not.toMatch(/(Payroll"}|breaks {}) as guest/);
  });

  it('takes callers with their people, and puts back what they write', async () => {
    const approving = app.as('writer');
    approving.approve();
    await policyMatrix(app, {
      agents: { approving, other: app.as('writer') },
      rows: [{ call: change, approving: 'allowed', other: refused('approval_denied', 'approval') }],
    });
    expect(await app.ungoverned.get('Invoice', 'i1')).toMatchObject({ total: 10 });
  });

  it.each<[string, object, RegExp]>([
    ['without rows', { agents: ['clerk'], rows: [] }, /needs agents and rows/],
    ['without agents', { agents: [], rows: [{ call: invoices }] }, /needs agents and rows/],
    [
      'that says nothing of an agent',
      { agents: ['clerk', 'guest'], rows: [{ call: invoices, clerk: 'allowed' }] },
      /says nothing of guest/,
    ],
    [
      'that speaks of an agent who is not in it',
      { agents: ['clerk'], rows: [{ call: invoices, clerk: 'allowed', gest: 'allowed' }] },
      /speaks of gest/,
    ],
    [
      'with a cell that is neither',
      { agents: ['clerk'], rows: [{ call: invoices, clerk: 'alowed' }] },
      /says nothing of clerk/,
    ],
    ['with a row without a call', { agents: ['clerk'], rows: [{ clerk: 'allowed' }] }, /row without a call/],
    [
      'with a tool that does not exist',
      { agents: ['clerk'], rows: [{ call: ['qurey'], clerk: refused('permission_denied', 'tier') }] },
      /no tool 'qurey'/,
    ],
  ])('fails %s', async (_, matrix, expected) => {
    expect(await failureOf(policyMatrix(app, matrix as never))).toMatch(expected);
  });

  it('has no cells about codes and gates that do not exist', () => {
    expect(() => refused('denied' as never, 'class')).toThrow("no code or kind of a refusal 'denied'");
    expect(() => refused('access_denied', 'door' as never)).toThrow("no gate 'door'");
  });
});

describe('the table of who may do what', () => {
  it('lists tools, fields and limits of every agent and class, and is the same each time', async () => {
    const table = await app.matrix();
    const row = (agent: string, name: string) =>
      table.find((one) => one.agent === agent && one.class === name);
    expect(row('clerk', 'Invoice')).toMatchObject({
      fields: 'createdAt number objectId org total updatedAt',
      rows: 'tenant {"org":"acme"}; all for get_schema',
      listed: true,
    });
    expect(row('clerk', 'Invoice')?.tools.split(' ')).toContain('query_class');
    expect(row('writer', 'Invoice')?.tools.split(' ')).toContain('update_object?');
    expect(row('clerk', '*')?.tools.split(' ')).toEqual(expect.arrayContaining(['open_total', 'breaks']));
    expect(row('guest', 'Invoice')).toBeUndefined();
    expect(row('portal', 'Invoice')).toBeDefined();
    expect(table.some((one) => one.class === 'Payroll')).toBe(false);
    expect(await app.matrix()).toEqual(table);
    expect(await app.audit.records()).toEqual([]);
  });
});
