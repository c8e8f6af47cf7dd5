import { afterAll, describe, expect, it } from 'vitest';
import { call, cancel, EVENTS, openSession, until } from '../testing/calls.js';
import { edgeUnderTest } from '../testing/edge-under-test.js';
import { initialize, modern, ping } from '../testing/requests.js';

const edge = await edgeUnderTest({ maxBatchSize: 3 });
afterAll(() => edge.stop());
const session = await openSession(edge, '2025-03-26');

const batch = (body: unknown, headers: Record<string, string> = session) => edge.ask({ headers, body });
const refused = { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'Invalid Request' } };

describe('several messages in one body', () => {
  it('are answered in their order, the notifications among them with nothing', async () => {
    const answer = await batch([
      call('echo', 'a'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 2, method: 'nope' },
    ]);
    expect(answer.status).toBe(200);
    expect(answer.json()).toMatchObject([
      { id: 'a', result: { isError: false } },
      { id: 2, error: { code: -32601 } },
    ]);
  });

  it('are one JSON array for a client that takes streams as well', async () => {
    const answer = await batch([ping(1)], { ...session, ...EVENTS });
    expect([answer.headers['content-type'], answer.json()]).toEqual([
      'application/json',
      [{ jsonrpc: '2.0', id: 1, result: {} }],
    ]);
  });

  it('are accepted with 202 when none is a request', async () => {
    const answer = await batch([cancel(1), { jsonrpc: '2.0', id: 'x', result: {} }]);
    expect([answer.status, answer.text]).toEqual([202, '']);
  });

  it('may cancel one another’s calls', async () => {
    edge.tools.contexts.length = 0;
    const answer = batch([call('wait', 'w'), ping(2)]);
    await until(() => edge.tools.contexts.length === 1);
    await batch([cancel('w')]);
    expect((await answer).json()).toMatchObject([{ id: 'w', result: { cancelled: true } }, { id: 2 }]);
  });

  it.each([
    ['none', []],
    ['too many', [ping(1), ping(2), ping(3), ping(4)]],
    ['an initialize', [ping(1), initialize('2025-03-26')]],
    ['an array', [[ping(1)]]],
    ['a scalar', [ping(1), 5]],
    ['an object as id', [ping({})]],
    ['a message of 2026-07-28', [modern('tools/list').body]],
  ])('are refused as a whole, before authentication: %s', async (_, body) => {
    const before = edge.authenticator.seen.length;
    const answer = await batch(body);
    expect([answer.status, answer.json()]).toEqual([400, refused]);
    expect(edge.authenticator.seen).toHaveLength(before);
  });

  it.each(['2024-11-05', '2025-06-18', '2025-11-25'])('are refused to a session of %s', async (version) => {
    const answer = await batch([ping(1)], await openSession(edge, version));
    expect([answer.status, answer.json()]).toEqual([400, refused]);
  });

  it('are refused to a label, to another principal, and to a header that names the version', async () => {
    const strangers: Record<string, string>[] = [
      { 'Mcp-Session-Id': 'never-seen', 'MCP-Protocol-Version': '2025-03-26' },
      { ...session, 'X-MCP-API-Key': 'eve' },
      { 'MCP-Protocol-Version': '2025-03-26' },
    ];
    for (const headers of strangers) expect((await batch([ping(1)], headers)).status).toBe(400);
  });
});

describe('the answers to one batch', () => {
  const MIB = 1024 * 1024;
  type Answered = { id: number; result?: unknown; error?: { code: number; message: string } }[];

  it('are bounded together: an answer that does not fit is replaced by an error, and further messages are not run', async () => {
    const wide = await edgeUnderTest({ maxBatchSize: 50 });
    try {
      wide.tools.work = () => ({ text: 'x'.repeat(3 * MIB) });
      const calls = Array.from({ length: 50 }, (_, at) => call('work', at));
      const answer = await wide.ask({ headers: await openSession(wide, '2025-03-26'), body: calls });
      const answers = answer.json() as unknown as Answered;
      expect([answer.status, answers.map(({ id }) => id)]).toEqual([200, calls.map(({ id }) => id)]);
      expect(Buffer.byteLength(answer.text)).toBeLessThan(8.1 * MIB);
      expect(answers.filter(({ result }) => result)).toHaveLength(2);
      const refusals = answers.flatMap(({ error }) => (error ? [error] : []));
      expect(new Set(refusals.map(({ code }) => code))).toEqual(new Set([-32000]));
      const made = refusals.filter(({ message }) => message.startsWith('Done, but its answer'));
      const notRun = refusals.filter(({ message }) => message.startsWith('Not run'));
      expect(made.length + notRun.length).toBe(48);
      expect(wide.tools.contexts).toHaveLength(2 + made.length);
      expect(made.length).toBeLessThan(4);
      for (const { message } of refusals) expect(message).toContain('send fewer messages in one batch');
    } finally {
      await wide.stop();
    }
  });

  it('contain at least one answer, however large it is', async () => {
    let calls = 0;
    edge.tools.work = () => ({ text: 'x'.repeat((calls += 1) === 1 ? 9 * MIB : 1) });
    const answers = (await batch([call('work', 1), call('work', 2)])).json() as unknown as Answered;
    expect(answers.filter(({ result }) => result)).toHaveLength(1);
    expect(answers.filter(({ error }) => error)).toHaveLength(1);
  });
});
