import { describe, expect, it } from 'vitest';
import type { SessionStore } from './session-store.js';

const ada = { owner: 'ada', version: '2025-06-18', capabilities: { elicitation: {} } };
const bob = { owner: 'bob', version: '2025-11-25', capabilities: {} };

/** What every session store promises. `make` returns an empty store. */
export function sessionStoreContract(name: string, make: () => SessionStore | Promise<SessionStore>): void {
  describe(`${name} keeps the session contract`, () => {
    it('finds what was opened', async () => {
      const store = await make();
      const id = await store.create(ada);
      expect(await store.find(id)).toEqual({ ...ada, terminated: false });
    });

    it('mints a different, header-safe id each time', async () => {
      const store = await make();
      const ids = [await store.create(ada), await store.create(ada)];
      expect(new Set(ids).size).toBe(2);
      for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{16,128}$/);
    });

    it('gives the proposed id when nobody has it', async () => {
      const store = await make();
      expect(await store.create({ ...ada, proposedId: 'mine' })).toBe('mine');
    });

    it('lets the owner open its own session anew', async () => {
      const store = await make();
      await store.create({ ...ada, proposedId: 'mine' });
      expect(await store.create({ ...ada, version: '2025-11-25', proposedId: 'mine' })).toBe('mine');
      expect((await store.find('mine'))?.version).toBe('2025-11-25');
    });

    it("never hands one owner's session to another", async () => {
      const store = await make();
      await store.create({ ...ada, proposedId: 'mine' });
      const other = await store.create({ ...bob, proposedId: 'mine' });
      expect(other).not.toBe('mine');
      expect((await store.find('mine'))?.owner).toBe('ada');
      expect((await store.find(other))?.owner).toBe('bob');
    });

    it('gives one of two simultaneous claimants the id, and the other a fresh one', async () => {
      const store = await make();
      const ids = await Promise.all([
        store.create({ ...ada, proposedId: 'both' }),
        store.create({ ...bob, proposedId: 'both' }),
      ]);
      expect(ids.filter((id) => id === 'both')).toHaveLength(1);
    });

    it('remembers that a session was terminated', async () => {
      const store = await make();
      const id = await store.create(ada);
      await store.terminate(id);
      expect(await store.find(id)).toMatchObject({ owner: 'ada', terminated: true });
    });

    it('never revives a terminated session', async () => {
      const store = await make();
      await store.create({ ...ada, proposedId: 'mine' });
      await store.terminate('mine');
      expect(await store.create({ ...ada, proposedId: 'mine' })).not.toBe('mine');
      expect((await store.find('mine'))?.terminated).toBe(true);
    });

    it('knows nothing of an id never opened, also after it was terminated', async () => {
      const store = await make();
      await store.terminate('never');
      expect(await store.find('never')).toBeUndefined();
    });
  });
}
