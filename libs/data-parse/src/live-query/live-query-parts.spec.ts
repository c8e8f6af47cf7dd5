import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventQueue } from './live-query-client.js';
import { assertHarmless, readFrame, subscribeFrame } from './live-query-frames.js';
import { socketUrlIssue } from './live-query-options.js';
import { isCarried } from './live-query-source.js';
import { CircuitBreaker, ReconnectDelay } from './reconnecting.js';

describe('the address of LiveQuery', () => {
  it.each(['ws://parse.example', 'https://parse.example', 'nonsense', 'ws://10.0.0.1'])(
    'is not %s, which is not repeated',
    (url) => {
      expect(socketUrlIssue(url)).toEqual(expect.any(String));
      expect(socketUrlIssue(url)).not.toContain(url);
    },
  );

  it.each(['localhost', '127.0.0.1', '[::1]', '0.0.0.0'])('may be %s in the clear', (host) => {
    expect(socketUrlIssue(`ws://${host}:1`)).toBeNull();
  });
});

describe('the pause before a reconnection', () => {
  it('grows up to the longest and stays within its jitter', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 }), (dice) => {
        let at = 0;
        const delay = new ReconnectDelay(1, 30, () => dice[at] ?? 0.5);
        for (let interval = 1; at < dice.length; at += 1, interval = Math.min(interval * 1.5, 30)) {
          const seconds = delay.next() / 1000;
          expect(seconds).toBeGreaterThanOrEqual(interval * 0.8 - 1e-9);
          expect(seconds).toBeLessThanOrEqual(interval * 1.2 + 1e-9);
        }
        delay.reset();
        expect(delay.next()).toBeLessThanOrEqual(1200);
      }),
    );
  });

  it('is never shorter than a tenth of a second', () => {
    const delay = new ReconnectDelay(0.01, 1, () => 0);
    expect(delay.next()).toBe(100);
  });
});

describe('the circuit breaker', () => {
  const breaker = () => {
    const clock = { at: 0 };
    return { clock, one: new CircuitBreaker(3, 60_000, () => clock.at) };
  };

  it('opens after failures in a row, which a success interrupts', () => {
    const { one } = breaker();
    one.noteFailure();
    one.noteFailure();
    one.noteSuccess();
    one.noteFailure();
    one.noteFailure();
    expect(one.admits()).toBe(true);
    one.noteFailure();
    expect([one.state, one.admits(), one.waiting]).toEqual(['open', false, 60_000]);
  });

  it('lets one try through after its time, and decides by that', () => {
    const { clock, one } = breaker();
    for (let failure = 0; failure < 3; failure += 1) one.noteFailure();
    clock.at = 60_000;
    expect([one.admits(), one.admits()]).toEqual([true, false]);
    one.noteFailure();
    expect([one.state, one.waiting]).toEqual(['open', 60_000]);
    clock.at = 120_000;
    expect(one.admits()).toBe(true);
    one.noteSuccess();
    expect([one.state, one.admits()]).toEqual(['closed', true]);
  });
});

describe('the event queue', () => {
  const queue = () => {
    const taken: number[] = [];
    const marks: string[] = [];
    const one = new EventQueue<number>(
      2,
      (event) => taken.push(event),
      () => marks.push('lost'),
    );
    return {
      one,
      taken,
      marks,
      drained: () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))),
    };
  };

  it('loses the oldest of three events for two places, and says so', async () => {
    const { one, taken, marks, drained } = queue();
    for (const event of [1, 2, 3]) one.add(event);
    expect(taken).toEqual([]);
    await drained();
    expect(taken).toEqual([2, 3]);
    expect(marks).toEqual(['lost']);
  });

  it('takes nothing once it has stopped', async () => {
    const { one, taken, drained } = queue();
    one.add(1);
    one.stop();
    one.add(2);
    await drained();
    expect(taken).toEqual([]);
  });
});

describe('frames', () => {
  it('name a projection only when there is one', () => {
    expect(JSON.parse(subscribeFrame(7, { className: 'Post', where: {} }))).toEqual({
      op: 'subscribe',
      requestId: 7,
      query: { className: 'Post', where: {} },
    });
  });

  it('are nothing when they are not of the protocol, whatever is sent', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(() => readFrame(text)).not.toThrow();
      }),
    );
    for (const text of [
      '',
      '[]',
      'null',
      '{"op":"other","requestId":1}',
      '{"op":"create","object":{"objectId":"a"}}',
    ])
      expect(readFrame(text)).toBeNull();
  });

  it('are a change that is not known where they name no row', () => {
    expect(readFrame('{"op":"create","requestId":1}')).toEqual({ op: 'unreadable', requestId: 1 });
  });

  it.each([
    { $where: 'x' },
    { a: { $function: {} } },
    { $or: [{ b: { $not: { $accumulator: 1 } } }] },
    { _rperm: 'x' },
    { $and: [{ _hashed_password: 'x' }] },
  ])('never carry %j', (where) => {
    expect(() => assertHarmless(where)).toThrow('names what no filter may');
  });
});

describe('a constraint', () => {
  const fields = new Map(
    Object.entries({
      org: { type: 'String' },
      n: { type: 'Number' },
      tags: { type: 'Array' },
      at: { type: 'Date' },
      owner: { type: 'Pointer', targetClass: '_User' },
    } as const),
  );
  const schema = { className: 'Post', fields, indexes: [], classLevelPermissions: null };

  it.each([
    {},
    { org: 'acme' },
    { $and: [{ org: 'acme' }, { n: { $in: [1, 2] } }] },
    { org: { $ne: 'x' }, n: { $exists: true } },
    { owner: { __type: 'Pointer', className: '_User', objectId: 'u' } },
  ])('is carried where LiveQuery judges as the database does: %j', (where) => {
    expect(isCarried(where, schema)).toBe(true);
  });

  it.each([
    { org: null },
    { n: { $gt: 3 } },
    { tags: { $ne: 'x' } },
    { tags: 'x' },
    { at: { $lt: { __type: 'Date', iso: '2026-01-01T00:00:00.000Z' } } },
    { $nor: [{ org: 'x' }] },
    { $readableBy: { principals: ['*'] } },
    { unknown: 'x' },
    { 'org.x': 'y' },
  ])('is not carried where it may differ: %j', (where) => {
    expect(isCarried(where, schema)).toBe(false);
  });
});
