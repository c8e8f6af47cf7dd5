import fc from 'fast-check';
import { AssertionError } from 'node:assert';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DENIAL_KINDS, ERROR_CODES, type Gate, GATES } from '@parley/server';
import {
  type Caller,
  createTestingApplication,
  type RefusalCode,
  type TestingApplication,
} from '@parley/testing';
import { INVOICES } from './invoices.fixture.js';

let app: TestingApplication;
let clerk: Caller;
beforeAll(async () => {
  app = await createTestingApplication({
    ...INVOICES,
    agents: { clerk: { tenantId: 'acme', rateLimit: 100_000 } },
  });
  clerk = app.as('clerk');
});
afterAll(() => app.close());

const PAYROLL = { class_name: 'Payroll' };

/** The message that a test would show; fails when there is none. */
async function messageOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => new Error('it passed'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AssertionError);
  return (error as AssertionError).message;
}

describe('expectRefused', () => {
  it('passes for the code, or the kind, and the gate that refused, and returns the refusal', async () => {
    const refusal = await clerk.expectRefused('access_denied', 'class', 'query_class', PAYROLL);
    expect(refusal.text).toBe("Class 'Payroll' is not accessible to this agent");
    expect(await clerk.expectRefused('hidden_class', 'class', 'query_class', PAYROLL)).toMatchObject({
      code: 'access_denied',
      kind: 'hidden_class',
    });
  });

  it('fails for a call that was allowed, and shows the result', async () => {
    const call = clerk.expectRefused('access_denied', 'class', 'query_class', { class_name: 'Invoice' });
    const message = await messageOf(call);
    expect(message).toContain('query_class {"class_name":"Invoice"} as clerk');
    expect(message).toContain("expected  to be refused with access_denied by the gate 'class'");
    expect(message).toContain('instead   allowed, and told: {');
  });

  it('fails for a refusal by another gate', async () => {
    const message = await messageOf(clerk.expectRefused('access_denied', 'tier', 'query_class', PAYROLL));
    expect(message).toContain("refused with access_denied (hidden_class) by the gate 'class'");
  });

  it('fails for a refusal with another code or kind by the same gate', async () => {
    for (const code of ['permission_denied', 'class_filter'] as const)
      expect(await messageOf(clerk.expectRefused(code, 'class', 'query_class', PAYROLL))).toContain(
        'refused with access_denied (hidden_class)',
      );
  });

  it('fails for a tool that breaks, and says that no rule said no', async () => {
    const message = await messageOf(clerk.expectRefused('access_denied', 'handler', 'breaks'));
    expect(message).toContain('failed with internal_error: something was thrown that is no refusal');
    expect(message).toContain('thrown, not told: Error: broken');
  });

  it('fails for a code, a kind, a gate or a tool that does not exist, and lists what does', async () => {
    const typo = (code: string, gate: string, tool = 'query_class') =>
      messageOf(clerk.expectRefused(code as RefusalCode, gate as Gate, tool, PAYROLL));
    expect(await typo('acess_denied', 'class')).toMatch(
      /no code or kind of a refusal 'acess_denied'.*hidden_class/,
    );
    expect(await typo('access_denied', 'clas')).toMatch(/no gate 'clas'.*class_permissions/);
    expect(await typo('permission_denied', 'tier', 'qurey_class')).toMatch(
      /no tool 'qurey_class'.*query_class/,
    );
  });

  it('fails for a class that nobody knows, which a filter of classes refuses as well', async () => {
    const narrow = app.as({ classes: { only: ['Invoice'] }, tenantId: 'acme' });
    const typo = narrow.expectRefused('class_filter', 'class', 'query_class', { class_name: 'Payrol' });
    expect(await messageOf(typo)).toMatch(/no class 'Payrol'.*Payroll/);
    await narrow.expectRefused('class_filter', 'class', 'query_class', { class_name: '_User' });
    await narrow.expectRefused('class_filter', 'class', 'query_class', { class_name: 'User' });
  });

  it('may be about a class that is missing', async () => {
    await clerk.expectRefused('invalid_argument', 'class', 'query_class', { class_name: 'Invoise' });
  });

  it('is about the call itself, not about calls that its tool makes', async () => {
    const message = await messageOf(clerk.expectRefused('hidden_class', 'class', 'tries'));
    expect(message).toContain('allowed, and told: {');
    const inner = clerk.expectRefused('hidden_class', 'class', 'query_class', PAYROLL);
    expect((await inner).record.tool).toBe('query_class');
  });

  it('tells calls apart that are made at the same time', async () => {
    const calls = Array.from({ length: 30 }, (_, index) =>
      clerk
        .expectRefused(
          'hidden_class',
          'class',
          index % 2 ? 'open_total' : 'query_class',
          index % 2 ? {} : PAYROLL,
        )
        .then(
          () => true,
          () => false,
        ),
    );
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 30 }, (_, index) => index % 2 === 0));
  });

  it('never passes for a code and a gate that are not those of the refusal', async () => {
    const codes = fc.constantFrom<RefusalCode>(...ERROR_CODES, ...DENIAL_KINDS);
    await fc.assert(
      fc.asyncProperty(codes, fc.constantFrom<Gate>(...GATES), async (code, gate) => {
        const isRight = gate === 'class' && (code === 'access_denied' || code === 'hidden_class');
        const passed = await clerk.expectRefused(code, gate, 'query_class', PAYROLL).then(
          () => true,
          () => false,
        );
        expect(passed).toBe(isRight);
      }),
      { numRuns: 150 },
    );
  });

  it('never passes for a call that is allowed', async () => {
    const codes = fc.constantFrom<RefusalCode>(...ERROR_CODES, ...DENIAL_KINDS);
    await fc.assert(
      fc.asyncProperty(codes, fc.constantFrom<Gate>(...GATES), async (code, gate) => {
        await expect(clerk.expectRefused(code, gate, 'open_total')).rejects.toThrow('allowed, and told');
      }),
      { numRuns: 50 },
    );
  });
});
