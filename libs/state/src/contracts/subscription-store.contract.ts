import { describe, expect, it } from 'vitest';
import { SUBSCRIPTION_TTL, type SubscriptionStore } from '../ports/sessions.js';
import type { MakePort } from './port-under-test.js';

const LIMITS = { maxPerSession: 3, maxSessions: 2 };
const [A, B, C, D] = ['parse://A/count', 'parse://B/count', 'parse://C/samples', 'parse://D/count'] as const;

export function subscriptionStoreContract(name: string, make: MakePort<SubscriptionStore>): void {
  describe(`${name} keeps the contract of subscription stores`, () => {
    it('remembers what a session subscribed to, once each', async () => {
      const { port } = await make();
      expect(await port.add('s', A, LIMITS)).toBe('added');
      expect(await port.add('s', C, LIMITS)).toBe('added');
      expect(await port.add('s', A, LIMITS)).toBe('present');
      expect([...(await port.of('s'))].sort()).toEqual([A, C]);
      expect(await port.of('other')).toEqual([]);
    });

    it('refuses one more than a session may have, and no repetition', async () => {
      const { port } = await make();
      for (const uri of [A, B, C]) await port.add('s', uri, LIMITS);
      expect(await port.add('s', D, LIMITS)).toBe('session-full');
      expect(await port.add('s', A, LIMITS)).toBe('present');
      await port.remove('s', A);
      expect(await port.add('s', D, LIMITS)).toBe('added');
    });

    it('refuses a new session when there are enough, and lets those there are add more', async () => {
      const { port } = await make();
      await port.add('s1', A, LIMITS);
      await port.add('s2', A, LIMITS);
      expect(await port.add('s3', A, LIMITS)).toBe('full');
      expect(await port.of('s3')).toEqual([]);
      expect(await port.add('s2', B, LIMITS)).toBe('added');
    });

    it('refuses an owner another session beyond its share, and nobody else', async () => {
      const { port } = await make();
      const of = (owner: string) => ({ maxPerSession: 3, maxSessions: 9, share: { owner, maxSessions: 2 } });
      for (const session of ['s1', 's2']) expect(await port.add(session, A, of('ada'))).toBe('added');
      expect(await port.add('s3', A, of('ada'))).toBe('owner-full');
      expect(await port.add('s2', B, of('ada'))).toBe('added');
      expect(await port.add('s3', A, of('bob'))).toBe('added');
      await port.forget('s1');
      expect(await port.add('s4', A, of('ada'))).toBe('added');
      expect(await port.add('s5', A, of('ada'))).toBe('owner-full');
    });

    it('frees space when a session has no entries left, or is removed', async () => {
      const { port } = await make();
      await port.add('s1', A, LIMITS);
      await port.add('s2', A, LIMITS);
      await port.remove('s1', A);
      expect(await port.add('s3', A, LIMITS)).toBe('added');
      await port.forget('s2');
      expect(await port.add('s4', A, LIMITS)).toBe('added');
      expect(await port.add('s5', A, LIMITS)).toBe('full');
    });

    it('gives the last places to no more than there are, of many simultaneous sessions', async () => {
      const { port } = await make();
      const asked = Array.from({ length: 10 }, (_, index) => port.add(`s${index}`, A, LIMITS));
      expect((await Promise.all(asked)).filter((entry) => entry === 'added')).toHaveLength(2);
    });

    it('treats a session that was never stored as gone', async () => {
      const { port } = await make();
      await port.remove('s', A);
      await port.forget('s');
      expect(await port.of('s')).toEqual([]);
      expect(await port.holder('s')).toBeUndefined();
    });

    it('knows the holder of a stream, and the one before', async () => {
      const { port } = await make();
      expect(await port.hold('s', 'one')).toBeUndefined();
      expect(await port.hold('s', 'two')).toBe('one');
      expect(await port.holder('s')).toBe('two');
      await port.forget('s');
      expect(await port.holder('s')).toBeUndefined();
    });

    it('counts no session for its stream alone', async () => {
      const { port } = await make();
      for (const session of ['s1', 's2', 's3']) await port.hold(session, 'one');
      expect(await port.add('s1', A, LIMITS)).toBe('added');
      await port.remove('s1', A);
      expect(await port.holder('s1')).toBe('one');
    });

    it('removes sessions that are not used, and frees their space', async () => {
      const { port, pass } = await make();
      await port.add('s1', A, LIMITS);
      await port.hold('s1', 'one');
      await port.add('s2', A, LIMITS);
      await pass(SUBSCRIPTION_TTL / 2);
      await port.touch(['s1', 'never']);
      await pass(SUBSCRIPTION_TTL / 2);
      expect(await port.of('s2')).toEqual([]);
      expect(await port.of('s1')).toEqual([A]);
      expect(await port.holder('s1')).toBe('one');
      expect(await port.of('never')).toEqual([]);
    });
  });
}
