import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestingApplication, type TestingApplication } from '@parley/testing';
import { INVOICES, SECRET } from './invoices.fixture.js';

let app: TestingApplication;
beforeAll(async () => {
  app = await createTestingApplication({ ...INVOICES, gates: 'open' });
});
beforeEach(() => app.reset());
afterAll(() => app.close());

const rows = async (caller: ReturnType<TestingApplication['as']>) => {
  const { data } = await caller.call<{ results: { objectId: string }[] }>('query_class', {
    class_name: 'Invoice',
    order: 'number',
  });
  return data.results.map(({ objectId }) => objectId);
};

describe('a call', () => {
  it('returns what the agent receives, and nothing the policy withholds', async () => {
    const result = await app.as('clerk').call('query_class', { class_name: 'Invoice', order: 'number' });
    expect(result.data).toMatchObject({
      result_count: 2,
      results: [{ number: 'A-1', total: 10 }, { number: 'A-2' }],
    });
    expect(JSON.parse(result.text)).toEqual(result.data);
    expect(JSON.stringify(result)).not.toContain(SECRET);
    expect(result.record).toMatchObject({ tool: 'query_class', success: true, rows: 2, tenant_id: 'acme' });
  });

  it('of a tool of the application runs it, its dependencies and its progress included', async () => {
    const output = await app.as('clerk').call('open_total');
    expect(output.data).toEqual({ total: 30 });
    expect(output.progress).toEqual([{ progress: 1, total: 2, message: 'reading' }]);
  });

  it('hands over arguments as they cross the wire', async () => {
    const args = { class_name: 'Invoice', where: { total: { $gt: 10 } }, limit: undefined };
    expect((await app.as('clerk').call('query_class', args)).data).toMatchObject({ result_count: 1 });
  });

  it('that is refused fails the test, and shows the gate and the message', async () => {
    const refused = app.as('clerk').call('query_class', { class_name: 'Payroll' });
    await expect(refused).rejects.toMatchObject({
      name: 'CallRefused',
      code: 'ERR_ASSERTION',
      message: expect.stringMatching(
        /as clerk[^]*access_denied \(hidden_class\) by the gate 'class'/,
      ) as string,
      refusal: { code: 'access_denied', kind: 'hidden_class', gate: 'class', failed: false },
    });
  });

  it('whose tool breaks fails the test, and shows the test alone what was thrown', async () => {
    const attempt = await app.as('clerk').attempt('breaks');
    expect(attempt).toMatchObject({ allowed: false, refusal: { code: 'internal_error', failed: true } });
    if (attempt.allowed) throw new Error('allowed');
    expect(attempt.refusal.text).not.toContain(SECRET);
    expect(String(attempt.refusal.thrown)).toContain(SECRET);
    await expect(app.as('clerk').call('breaks')).rejects.toThrow(
      `thrown, not told: Error: broken: ${SECRET}`,
    );
  });

  it('with an operator that runs code is refused, and only the record says why', async () => {
    const args = { class_name: 'Invoice', where: { $where: 'true' } };
    const refusal = await app.as('clerk').expectRefused('security_blocked', 'where', 'query_class', args);
    expect(refusal.text).toBe('Invalid params');
    expect(refusal.cause).toContain('code_execution');
  });

  it('that is cancelled is refused as one', async () => {
    const signal = AbortSignal.abort();
    const attempt = await app.as('clerk').attempt('open_total', {}, { signal });
    expect(attempt).toMatchObject({ allowed: false, refusal: { code: 'cancelled' } });
  });

  it('counts for the rate limit of its principal', async () => {
    const hasty = { permissions: 'readonly', tenantId: 'acme', rateLimit: 1 } as const;
    await app.as(hasty, { principal: 'one' }).call('open_total');
    await app.as(hasty, { principal: 'one' }).expectRefused('rate_limited', 'rate_limit', 'open_total');
    await app.as(hasty, { principal: 'other' }).call('open_total');
  });
});

describe('a caller', () => {
  it('sees the rows of its tenant and its user alone', async () => {
    expect(await rows(app.as('clerk'))).toEqual(['i1', 'i2']);
    expect(await rows(app.as('clerk', { user: 'ada' }))).toEqual(['i1', 'i2']);
    expect(await rows(app.as('clerk', { user: 'bob' }))).toEqual(['i1']);
    expect(await rows(app.as('clerk', { tenantId: 'globex' }))).toEqual(['i3']);
  });

  it('reads with the session that it shows, and with none that does not exist', async () => {
    expect(await rows(app.as('portal', { session: 'r:of-ada' }))).toEqual(['i1', 'i2']);
    const stranger = app.as('portal', { session: 'r:of-nobody' });
    await stranger.expectRefused('access_denied', 'identity', 'query_class', { class_name: 'Invoice' });
  });

  it('is refused where it could not be one', () => {
    expect(() => app.as('nobody')).toThrow("no agent is named 'nobody'");
    expect(() => app.as('portal')).toThrow('reads with what callers show');
    expect(() => app.as('clerk', { user: 'ada', role: 'admins' })).toThrow('only one of them');
    expect(() => app.as('clerk', { user: '$ne' })).toThrow('an identity that is nobody');
    expect(() => app.as({ permissions: 'root' as 'admin' })).toThrow('must be one of readonly, write, admin');
  });

  it('may have limits of its own, under the policy of all', async () => {
    const narrow = app.as({ classes: { only: ['_User'] }, tenantId: 'acme' });
    await narrow.expectRefused('class_filter', 'class', 'query_class', { class_name: 'Invoice' });
    expect((await narrow.call('query_class', { class_name: '_User' })).data).toMatchObject({
      result_count: 2,
    });
  });

  it('is shown the tools that it may call', async () => {
    const names = async (agent: string) => (await app.as(agent).listTools()).map(({ name }) => name);
    expect(await names('clerk')).toEqual(expect.arrayContaining(['query_class', 'open_total']));
    expect(await names('clerk')).not.toContain('update_object');
    expect(await names('writer')).toContain('update_object');
  });

  it('may ask anything else of the protocol', async () => {
    expect(await app.as('clerk').request('ping')).toEqual({});
    await expect(app.as('clerk').request('nothing/here')).rejects.toThrow('-32601');
  });
});

describe('people at the client', () => {
  const update = { class_name: 'Invoice', object_id: 'i1', fields: { total: 11 } };

  it('are not there unless the test says so', async () => {
    await app.as('writer').expectRefused('approval_denied', 'approval', 'update_object', update);
    expect(await app.ungoverned.get('Invoice', 'i1')).toMatchObject({ total: 10 });
  });

  it('approve what they are shown', async () => {
    const writer = app.as('writer');
    writer.approve();
    await writer.call('update_object', update);
    expect(await app.ungoverned.get('Invoice', 'i1')).toMatchObject({ total: 11 });
    expect(writer.questions).toHaveLength(1);
    expect(writer.questions[0]?.params['message']).toContain('"total": 11');
    expect(writer.unasked).toBe(0);
    const decided = (await app.audit.entries()).filter(({ type }) => type === 'approval');
    expect(decided).toMatchObject([{ outcome: 'approve', tool: 'update_object' }]);
  });

  it.each([
    ['say no', 'denied by approver', (writer: ReturnType<TestingApplication['as']>) => writer.deny()],
    ['close the question', 'cancelled by approver', (writer) => writer.deny('cancel')],
    ['do not answer in time', 'timed out after 300s', (writer) => writer.letTimeOut()],
    ['have left', 'did not advertise', (writer) => (writer.approve(), writer.leave())],
  ] as [string, string, (writer: ReturnType<TestingApplication['as']>) => void][])(
    '%s, and nothing is written',
    async (_, text, react) => {
      const writer = app.as('writer');
      react(writer);
      const refusal = await writer.expectRefused('approval_denied', 'approval', 'update_object', update);
      expect(refusal.text).toContain(text);
      expect(await app.ungoverned.get('Invoice', 'i1')).toMatchObject({ total: 10 });
    },
  );

  it('answer once for each time the test said so', async () => {
    const writer = app.as('writer');
    writer.approve();
    await writer.call('update_object', update);
    await writer.expectRefused('approval_denied', 'approval', 'update_object', update);
  });

  it('answer the questions of a tool', async () => {
    const clerk = app.as('clerk');
    clerk.answer({ action: 'accept', content: { colour: 'red' } });
    expect((await clerk.call('asks')).data).toEqual({ action: 'accept', content: { colour: 'red' } });
    await clerk.expectRefused('not_implemented', 'availability', 'asks');
  });
});

describe('an explanation', () => {
  it('lists gates and limits, and makes no call', async () => {
    const result = await app.as('clerk').explain('query_class', { class_name: 'Invoice' });
    expect(result).toMatchObject({
      allowed: true,
      injected: [{ className: 'Invoice', origin: 'tenant', where: { org: 'acme' } }],
    });
    expect(await app.audit.records()).toEqual([]);
  });

  it('goes by the caller, its session included', async () => {
    const session = app.as('portal', { session: 'r:of-ada' });
    const { injected } = await session.explain('query_class', { class_name: 'Invoice' });
    expect(JSON.stringify(injected)).toContain('ada');
  });

  it('asks nobody, writes nothing and runs no code of the application', async () => {
    const writer = app.as('writer');
    const update = { class_name: 'Invoice', object_id: 'i1', fields: { total: 11 } };
    expect(await writer.explain('update_object', update)).toMatchObject({ asksApproval: true });
    expect((await writer.explain('breaks')).allowed).toBe(true);
    expect(await app.ungoverned.get('Invoice', 'i1')).toMatchObject({ total: 10 });
  });
});
