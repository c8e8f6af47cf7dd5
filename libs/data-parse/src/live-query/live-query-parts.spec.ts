import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventQueue } from './live-query-client.js';
import { assertHarmless, connectFrame, readFrame, subscribeFrame } from './live-query-frames.js';
import { type LiveQueryOptions, liveQuerySettings } from './live-query-options.js';
import { isCarried } from './live-query-source.js';
import { CircuitBreaker, ReconnectDelay } from './reconnecting.js';

describe('the options of LiveQuery', () => {
  const settings = (options: Partial<LiveQueryOptions>) =>
    liveQuerySettings({ url: 'wss://parse.example/live', applicationId: 'app', ...options });

  it('derive the address from that of the server: its host and port, and no path', () => {
    const of = (serverUrl: string) => settings({ url: null, serverUrl }).url;
    expect(of('https://parse.example:1337/parse')).toBe('wss://parse.example:1337/');
    expect(of('http://127.0.0.1:1337/parse')).toBe('ws://127.0.0.1:1337/');
  });

  it.each(['ws://parse.example', 'https://parse.example', 'nonsense', 'ws://10.0.0.1'])(
    'refuse %s without repeating it',
    (url) => {
      expect(() => settings({ url })).toThrow(/^url: /);
      expect(() => settings({ url })).not.toThrow(url);
    },
  );

  it.each(['localhost', '127.0.0.1', '[::1]', '0.0.0.0'])('let %s speak in the clear', (host) => {
    expect(settings({ url: `ws://${host}:1` }).url).toContain(host);
  });

  it('let another machine speak in the clear when told to', () => {
    expect(settings({ url: 'ws://parse.example', allowInsecure: true }).url).toBe('ws://parse.example/');
  });

  it.each([
    ['pingInterval', 0],
    ['pongTimeout', -1],
    ['eventQueueSize', 0],
    ['maxMessageSize', Number.NaN],
    ['reconnectJitter', 1.5],
    ['backpressureStrategy', 'drop_all'],
    ['sslMinVersion', 'SSLv3'],
  ])('refuse %s: %s', (option, value) => {
    expect(() => settings({ [option]: value })).toThrow(new RegExp(`^${option}: `));
  });
});

describe('the pause before a reconnection', () => {
  it('grows up to the longest and stays within its jitter', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 }), (dice) => {
        let at = 0;
        const delay = new ReconnectDelay(
          { initial: 1, longest: 30, multiplier: 1.5, jitter: 0.2 },
          () => dice[at] ?? 0.5,
        );
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
    const delay = new ReconnectDelay({ initial: 0.01, longest: 1, multiplier: 2, jitter: 1 }, () => 0);
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
  const queue = (strategy: 'drop_oldest' | 'drop_newest' | 'block') => {
    const taken: number[] = [];
    const marks: string[] = [];
    const one = new EventQueue<number>({
      size: 2,
      strategy,
      consume: (event) => taken.push(event),
      onDrop: (which) => marks.push(which),
      onFull: () => marks.push('full'),
      onRoom: () => marks.push('room'),
    });
    return {
      one,
      taken,
      marks,
      drained: () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))),
    };
  };

  it.each([
    ['drop_oldest', [2, 3], ['oldest']],
    ['drop_newest', [1, 2], ['newest']],
    ['block', [1, 2, 3], ['full', 'room']],
  ] as const)('with %s takes %j of three events for two places', async (strategy, kept, told) => {
    const { one, taken, marks, drained } = queue(strategy);
    for (const event of [1, 2, 3]) one.add(event);
    expect(taken).toEqual([]);
    await drained();
    expect(taken).toEqual(kept);
    expect(marks).toEqual(told);
    expect(one.counts.processed).toBe(kept.length);
  });

  it('takes nothing once it has stopped', async () => {
    const { one, taken, drained } = queue('block');
    one.add(1);
    one.stop();
    expect(one.add(2)).toBe(false);
    await drained();
    expect(taken).toEqual([]);
  });
});

describe('frames', () => {
  it('carry the master key on an admin connection alone', () => {
    const greeting = { applicationId: 'app', clientKey: null, restApiKey: null, masterKey: 'mk' };
    expect(connectFrame({ ...greeting, useMasterKey: false })).toBe('{"op":"connect","applicationId":"app"}');
    expect(connectFrame({ ...greeting, useMasterKey: true })).toContain('"masterKey":"mk"');
  });

  it('name a projection and watched fields only when there are some', () => {
    expect(JSON.parse(subscribeFrame(7, { className: 'Post', where: {}, watch: [] }))).toEqual({
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
