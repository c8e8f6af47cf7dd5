import { describe, expect, it } from 'vitest';
import { SESSION_TTL, type SessionStore } from '../ports/sessions.js';
import type { MakePort } from './port-under-test.js';

const ada = { owner: 'ada', version: '2025-06-18', capabilities: { elicitation: {} } };
const bob = { owner: 'bob', version: '2025-11-25', capabilities: {} };

/** The contract of every session store, with the usual time to live and a share of three sessions for each principal. */
export function sessionStoreContract(name: string, make: MakePort<SessionStore>): void {
  describe(`${name} keeps the session contract`, () => {
    it('finds what was opened', async () => {
      const { port: store } = await make();
      const id = await store.create(ada);
      expect(await store.find(id)).toEqual({ ...ada, terminated: false });
    });

    it('mints a different, header-safe id each time', async () => {
      const { port: store } = await make();
      const ids = [await store.create(ada), await store.create(ada)];
      expect(new Set(ids).size).toBe(2);
      for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{16,128}$/);
    });

    it('gives the proposed id when nobody has it', async () => {
      const { port: store } = await make();
      expect(await store.create({ ...ada, proposedId: 'mine' })).toBe('mine');
    });

    it('lets the owner open its own session again', async () => {
      const { port: store } = await make();
      await store.create({ ...ada, proposedId: 'mine' });
      expect(await store.create({ ...ada, version: '2025-11-25', proposedId: 'mine' })).toBe('mine');
      expect((await store.find('mine'))?.version).toBe('2025-11-25');
    });

    it('keeps the log level of a session that is opened again with one', async () => {
      const { port: store } = await make();
      const id = await store.create(ada);
      expect((await store.find(id))?.logLevel).toBeUndefined();
      await store.create({ ...ada, proposedId: id, logLevel: 'warning' });
      expect(await store.find(id)).toEqual({ ...ada, logLevel: 'warning', terminated: false });
      await store.create({ ...ada, proposedId: id });
      expect((await store.find(id))?.logLevel).toBeUndefined();
    });

    it("never hands one owner's session to another", async () => {
      const { port: store } = await make();
      await store.create({ ...ada, proposedId: 'mine' });
      const other = await store.create({ ...bob, proposedId: 'mine' });
      expect(other).not.toBe('mine');
      expect((await store.find('mine'))?.owner).toBe('ada');
      expect((await store.find(other))?.owner).toBe('bob');
    });

    it('gives one of two simultaneous claimants the id, and the other a fresh one', async () => {
      const { port: store } = await make();
      const ids = await Promise.all([
        store.create({ ...ada, proposedId: 'both' }),
        store.create({ ...bob, proposedId: 'both' }),
      ]);
      expect(ids.filter((id) => id === 'both')).toHaveLength(1);
    });

    it('counts the sessions that can be used, of all principals', async () => {
      const { port: store } = await make();
      expect(await store.count()).toBe(0);
      const ended = await store.create(ada);
      await store.create(ada);
      await store.create({ ...bob, proposedId: 'mine' });
      await store.create({ ...bob, proposedId: 'mine' });
      expect(await store.count()).toBe(3);
      await store.terminate(ended);
      await store.find(ended);
      expect(await store.count()).toBe(2);
    });

    it('counts no session that its principal lost beyond its share', async () => {
      const { port: store } = await make();
      for (let i = 0; i < 5; i += 1) await store.create(ada);
      expect(await store.count()).toBe(3);
    });

    it('remembers that a session was terminated', async () => {
      const { port: store } = await make();
      const id = await store.create(ada);
      await store.terminate(id);
      expect(await store.find(id)).toMatchObject({ owner: 'ada', terminated: true });
    });

    it('never revives a terminated session', async () => {
      const { port: store } = await make();
      await store.create({ ...ada, proposedId: 'mine' });
      await store.terminate('mine');
      expect(await store.create({ ...ada, proposedId: 'mine' })).not.toBe('mine');
      expect((await store.find('mine'))?.terminated).toBe(true);
    });

    it('knows nothing of an id never opened, also after it was terminated', async () => {
      const { port: store } = await make();
      await store.terminate('never');
      expect(await store.find('never')).toBeUndefined();
    });

    it('forgets a session that was not used for its time, and only that', async () => {
      const { port: store, pass } = await make();
      const used = await store.create(ada);
      const idle = await store.create(ada);
      await pass(SESSION_TTL * 0.6);
      await store.find(used);
      await pass(SESSION_TTL * 0.6);
      expect(await store.find(used)).toBeDefined();
      expect(await store.find(idle)).toBeUndefined();
    });

    it('remembers the end of a session as long as a session', async () => {
      const { port: store, pass } = await make();
      const id = await store.create(ada);
      await pass(SESSION_TTL * 0.6);
      await store.terminate(id);
      await pass(SESSION_TTL * 0.6);
      expect(await store.find(id)).toMatchObject({ terminated: true });
    });

    it('forgets the longest unused session of a principal that opens more than its share, and nobody else’s', async () => {
      const { port: store, pass } = await make();
      const theirs = await store.create(bob);
      const first = await store.create(ada);
      await pass(120_000);
      const second = await store.create(ada);
      await pass(120_000);
      const third = await store.create(ada);
      await pass(120_000);
      await store.find(first);
      await pass(120_000);
      const fourth = await store.create(ada);
      expect(await store.find(second)).toBeUndefined();
      for (const id of [first, third, fourth, theirs]) expect(await store.find(id)).toBeDefined();
    });

    it('counts the ends that it remembers, so that opening and ending sessions fills nothing', async () => {
      const { port: store, pass } = await make();
      const ended: string[] = [];
      for (let at = 0; at < 6; at += 1) {
        const id = await store.create(ada);
        await store.terminate(id);
        ended.push(id);
        await pass(1_000);
      }
      const known = await Promise.all(ended.map((id) => store.find(id)));
      expect(known.map((session) => session !== undefined)).toEqual([false, false, false, true, true, true]);
    });

    it('counts a session that a principal opens again once', async () => {
      const { port: store } = await make();
      const others = [await store.create(ada), await store.create(ada)];
      for (let at = 0; at < 5; at += 1) await store.create({ ...ada, proposedId: 'mine' });
      for (const id of [...others, 'mine']) expect(await store.find(id)).toBeDefined();
    });

    it('keeps ids apart that differ in anything', async () => {
      const { port: store } = await make();
      const ids = ['a', 'A', 'a}', 'a:b', 'a b'];
      for (const proposedId of ids)
        expect(await store.create({ ...ada, owner: `owner of ${proposedId}`, proposedId })).toBe(proposedId);
      await store.terminate('a');
      for (const id of ids) expect((await store.find(id))?.terminated).toBe(id === 'a');
    });
  });
}
