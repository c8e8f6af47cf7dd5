import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { call, EVENTS, until } from '../testing/calls.js';
import { type Answer, type Asked, edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { modern } from '../testing/requests.js';
import { PendingBodies } from './client-memory.js';

const MIB = 1024 * 1024;

let edge: EdgeUnderTest;
afterEach(async () => {
  edge.tools.release();
  await edge.stop();
});

const asKey = (key: string) => ({ 'X-MCP-API-Key': key });
/** Bytes that no tool reads. */
const padded = (body: object, bytes: number) => `${JSON.stringify(body)}${' '.repeat(bytes)}`;

/** Callers behind one proxy, as all callers of these tests. */
describe.each<[string, (key: string) => Asked]>([
  ['calls', (key) => ({ headers: asKey(key), body: call('wait') })],
  ['calls answered as streams', (key) => ({ headers: { ...EVENTS, ...asKey(key) }, body: call('wait') })],
  ['calls without a session', (key) => modern('tools/call', { name: 'wait', arguments: {} }, asKey(key))],
])('bodies of %s that are not answered', (_, toRequest) => {
  const ask = (key: string, bytes: number): Promise<Answer> => {
    const asked = toRequest(key);
    return edge.ask({ ...asked, body: padded(asked.body as object, bytes) });
  };

  it('fill the share of their principal alone: every other caller of its address is served', async () => {
    edge = await edgeUnderTest({ maxBodySize: 2 * MIB });
    const own = Array.from({ length: 15 }, () => ask('ada', MIB));
    await until(() => edge.tools.contexts.length === own.length);
    const refused = await ask('ada', MIB + 65_536);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(refused.text).toContain('server busy: the requests of this caller');

    const others = ['eve', 'bob'].map((key) => ask(key, MIB));
    await until(() => edge.tools.contexts.length === own.length + others.length);
    edge.tools.release();
    for (const { status } of await Promise.all([...own, ...others])) expect(status).toBe(200);

    const again = ask('ada', MIB + 65_536);
    await until(() => edge.tools.contexts.length === own.length + others.length + 1);
    edge.tools.release();
    expect((await again).status).toBe(200);
  });
});

describe('bodies that are held', () => {
  it('count for one caller at a time, and for nobody once they are released', () => {
    const limits = { perCaller: 100, total: 1_000 };
    const step = fc.record({
      address: fc.constantFrom('a', 'b'),
      pieces: fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 4 }),
      principal: fc.option(fc.constantFrom('ada', 'eve'), { nil: null }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const bodies = new PendingBodies(limits);
        const sums = new Map<string, number>();
        const held = steps.map(({ address, pieces, principal }) => {
          const body = bodies.begin(address);
          const bytes = pieces.filter((piece) => body.grow(piece)).reduce((sum, piece) => sum + piece, 0);
          const isOwned = principal !== null && body.own(principal);
          const caller = isOwned ? `principal ${principal}` : `address ${address}`;
          sums.set(caller, (sums.get(caller) ?? 0) + bytes);
          return body;
        });
        expect(Math.max(0, ...sums.values())).toBeLessThanOrEqual(limits.perCaller);
        for (const body of held) {
          body.release();
          body.release();
        }
        for (const address of ['a', 'b'])
          for (const principal of ['ada', 'eve']) {
            const whole = bodies.begin(address);
            expect([whole.grow(limits.perCaller), whole.own(principal)]).toEqual([true, true]);
            whole.release();
          }
      }),
    );
  });
});
