import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { call, EVENTS } from '../testing/calls.js';
import { type Asked, edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import type { McpEdgeOptions } from './edge-dependencies.js';
import { RefusalPace } from './refusal-pace.js';

/** Refusals that need not wait. */
const BURST = 20;
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

describe('the pace of refusals that say when to come back', () => {
  it('lets the first 20 of a principal leave at once, and then 10 a second', () => {
    let now = 1_000;
    const pace = new RefusalPace(() => now);
    const delays = Array.from({ length: BURST + 3 }, () => pace.findDelay('ada', 1));
    expect(delays).toEqual([...Array<number>(BURST).fill(0), 100, 200, 300]);
    now += 300;
    expect(pace.findDelay('ada', 1)).toBe(100);
  });

  it('lets 20 leave at once again after two seconds without one', () => {
    let now = 0;
    const pace = new RefusalPace(() => now);
    for (let at = 0; at < BURST; at += 1) pace.findDelay('ada', 1);
    now += 2_000;
    expect(Array.from({ length: BURST }, () => pace.findDelay('ada', 1))).toEqual(Array(BURST).fill(0));
  });

  it('counts every refusal of a batch', () => {
    const pace = new RefusalPace(() => 0);
    expect(pace.findDelay('ada', BURST)).toBe(0);
    expect(pace.findDelay('ada', 5)).toBe(500);
  });

  it('never makes an answer wait for more than five seconds, and never one principal for another', () => {
    const steps = fc.array(
      fc.record({ passes: fc.nat(400), refusals: fc.integer({ min: 1, max: 50 }), other: fc.boolean() }),
      { minLength: 1, maxLength: 200 },
    );
    let longest = 0;
    fc.assert(
      fc.property(steps, (all) => {
        let now = 0;
        const shared = new RefusalPace(() => now);
        const alone = new RefusalPace(() => now);
        for (const { passes, refusals, other } of all) {
          now += passes;
          const delay = shared.findDelay(other ? 'bob' : 'ada', refusals);
          longest = Math.max(longest, delay);
          expect(delay).toBeLessThanOrEqual(5_000);
          if (!other) expect(delay).toBe(alone.findDelay('ada', refusals));
        }
      }),
    );
    // The steps reach the limit.
    expect(longest).toBe(5_000);
  });

  it('forgets principals without a recent refusal, and no other', () => {
    let now = 0;
    const pace = new RefusalPace(() => now);
    for (let at = 0; at < 1_000; at += 1) pace.findDelay(`idle-${at}`, 1);
    now += 10_000;
    for (let at = 0; at <= BURST; at += 1) pace.findDelay('ada', 1);
    expect(pace.remembered).toBe(1);
    expect(pace.findDelay('ada', 1)).toBe(200);
  });
});

describe('an answer that refuses a caller until later', () => {
  let edge: EdgeUnderTest;
  afterEach(async () => {
    vi.useRealTimers();
    await edge.stop();
  });

  /** An edge whose clock stands still until the test moves it. */
  const openEdge = async (options: McpEdgeOptions = {}) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    edge = await edgeUnderTest(options);
  };
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise(setImmediate);
  };
  const ask = async (body: unknown, key = 'ada', headers: Asked['headers'] = {}) => {
    const answer = await edge.ask({ body, headers: { 'X-MCP-API-Key': key, ...headers } });
    return answer.text;
  };

  /** Refused calls of one caller at once. @returns their answers so far */
  const sendRefused = async (
    count: number,
    body: unknown = call('limited'),
    headers: Asked['headers'] = {},
  ) => {
    const answers: string[] = [];
    for (let at = 0; at < count; at += 1)
      void ask(body, 'ada', headers).then(
        (answer) => answers.push(answer),
        (error: Error) => answers.push(error.message),
      );
    const sent = Math.min(count, BURST);
    await until(() => answers.length >= sent && edge.edge.answering === count - sent);
    return answers;
  };
  /** One more refused call, whose answer waits. @param count of those that wait then */
  const createWaiting = async (count: number, body: unknown, headers: Asked['headers'] = {}) => {
    ask(body, 'ada', headers).catch(() => undefined);
    await until(() => edge.edge.answering === count);
    // Its tool has refused it.
    await until(() => edge.tools.contexts.length === BURST + count);
  };
  const pass = async (milliseconds: number, answers: readonly string[], count: number) => {
    await vi.advanceTimersByTimeAsync(milliseconds);
    await until(() => answers.length >= count);
    expect(answers).toHaveLength(count);
  };

  it.each([
    ['a call', call('limited'), {}, /rate_limited/],
    ['a call whose client reads streams', call('limited'), EVENTS, /rate_limited/],
    ['a message above the limit of requests', LIST, {}, /Too Many Requests/],
  ] as const)('waits for its turn: %s', async (_, body, headers, text) => {
    const exhausted = { check: () => Promise.resolve({ retryAfter: 2, limit: 1, window: 2 }) };
    await openEdge(body === LIST ? { requestLimiter: exhausted as never } : {});
    const answers = await sendRefused(BURST + 10, body, headers);
    expect(answers).toHaveLength(BURST);
    await pass(500, answers, BURST + 5);
    await pass(500, answers, BURST + 10);
    for (const answer of answers) expect(answer).toMatch(text);
  });

  it('delays neither an accepted call of the same caller nor a refused one of another', async () => {
    await openEdge();
    await sendRefused(BURST + 10);
    expect(await ask(call('whoami'))).toContain('ada');
    expect(await ask(call('limited'), 'bob')).toContain('rate_limited');
    expect(edge.edge.answering).toBe(10);
  });

  it('takes no place of a stream while it waits', async () => {
    await openEdge({ maxConcurrentDispatchers: 1 });
    for (let at = 0; at < BURST; at += 1) await ask(call('limited'), 'ada', EVENTS);
    await createWaiting(1, call('limited'), EVENTS);
    expect(await ask(call('whoami'), 'bob', EVENTS)).toContain('bob');
  });

  it('counts no longer against the bodies of its address, and frees what was sent', async () => {
    const large = call('limited', 1, { padding: 'x'.repeat(900_000) });
    await openEdge();
    for (let at = 0; at < BURST; at += 1) await ask(call('limited'));
    // Together more than the bodies of an address may be.
    for (let at = 1; at <= 20; at += 1) await createWaiting(at, large);
    expect(await ask(large, 'bob')).toContain('rate_limited');
  });

  it('ends with its client, whose place is free for another', async () => {
    await openEdge();
    await sendRefused(BURST);
    await createWaiting(1, call('limited'));
    edge.server.closeAllConnections();
    await until(() => edge.edge.answering === 0);
    expect(await ask(call('whoami'))).toContain('ada');
  });

  it('leaves at once when the service closes, also when its call ends after that', async () => {
    await openEdge();
    const answers = await sendRefused(BURST + 9);
    let end: (value?: unknown) => void = () => undefined;
    edge.tools.work = () => new Promise((resolve) => (end = resolve));
    void ask(call('limited')).then((answer) => answers.push(answer));
    await until(() => edge.tools.contexts.length === BURST + 10);
    void edge.edge.close();
    await until(() => answers.length === BURST + 9);
    end();
    await until(() => answers.length === BURST + 10);
    expect(answers.every((answer) => answer.includes('rate_limited'))).toBe(true);
  });

  it('leaves at once when 500 of the caller wait already', async () => {
    await openEdge();
    const answers = await sendRefused(BURST + 500);
    expect(answers).toHaveLength(BURST);
    expect(await ask(call('limited'))).toContain('rate_limited');
  });
});
