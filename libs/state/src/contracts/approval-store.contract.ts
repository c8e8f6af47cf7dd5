import { describe, expect, it } from 'vitest';
import {
  type ApprovalStore,
  ApprovalStoreFull,
  type ApprovalDraft,
  MAX_PENDING,
} from '../ports/approvals.js';
import type { MakePort } from './port-under-test.js';

/** A case with the members that a call sets. */
export function createDraft(more: Partial<ApprovalDraft> = {}): ApprovalDraft {
  return {
    requester: { principal: 'key:1', agent: 'writer', tenant: 'acme' },
    tool: 'update_object',
    permission: 'write',
    subject: 'subject 1',
    holdsFor: 'row 1',
    preview: { tool: 'update_object', args: { title: 'x', list: [], empty: {} } },
    className: 'Post',
    objectId: 'p1',
    ...more,
  };
}

const TTL = 60_000;
const yes = { approved: true, by: 'key:2', at: 1 };
const no = { approved: false, by: 'key:3', at: 2, reason: 'not now' };

/** Maximum decided cases of each requester. */
export const TIGHT_DECIDED = { entries: 3 };

/** The contract of every approval store, with `TIGHT_DECIDED` as its share. */
export function approvalStoreContract(name: string, make: MakePort<ApprovalStore>): void {
  describe(`${name} keeps the contract of approval stores`, () => {
    it('gives back a case as it was opened', async () => {
      const { port } = await make();
      const { opened, isNew } = await port.open(createDraft(), TTL);
      expect(isNew).toBe(true);
      expect(opened).toMatchObject({ ...createDraft(), status: 'pending' });
      expect(opened.expiresAt - opened.requestedAt).toBe(TTL);
      expect(await port.find(opened.id)).toEqual(opened);
      expect(await port.find('never')).toBeUndefined();
    });

    it('has one open case for a subject, however many ask at once', async () => {
      const { port } = await make();
      const cases = await Promise.all(Array.from({ length: 10 }, () => port.open(createDraft(), TTL)));
      expect(new Set(cases.map(({ opened }) => opened.id)).size).toBe(1);
      expect(cases.filter(({ isNew }) => isNew)).toHaveLength(1);
      const other = await port.open(createDraft({ subject: 'subject 2' }), TTL);
      expect(other.isNew).toBe(true);
    });

    it('counts the undecided cases of all tenants', async () => {
      const { port } = await make();
      expect(await port.countPending()).toBe(0);
      const { opened } = await port.open(createDraft(), TTL);
      const requester = { principal: 'key:9', agent: 'writer', tenant: null };
      const other = await port.open(createDraft({ requester, subject: 'subject 2' }), TTL);
      await port.open(createDraft(), TTL);
      expect(await port.countPending()).toBe(2);
      await port.decide(opened.id, yes);
      expect(await port.countPending()).toBe(1);
      await port.decide(other.opened.id, no);
      expect(await port.countPending()).toBe(0);
    });

    it('takes the first of many decisions, and no later one', async () => {
      const { port } = await make();
      const { opened } = await port.open(createDraft(), TTL);
      const outcomes = await Promise.all(
        [yes, no, yes, no].map((decision) => port.decide(opened.id, decision)),
      );
      expect(outcomes.filter((outcome) => outcome === 'decided')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === 'decided_before')).toHaveLength(3);
      const decided = await port.find(opened.id);
      expect(await port.decide(opened.id, decided?.decision?.approved ? no : yes)).toBe('decided_before');
      expect(await port.find(opened.id)).toEqual(decided);
      expect(await port.decide('never', yes)).toBe('unknown');
    });

    it('lets an approval be used once, and then opens another case for the subject', async () => {
      const { port } = await make();
      const { opened } = await port.open(createDraft(), TTL);
      expect(await port.use(opened.id)).toBe(false);
      await port.decide(opened.id, yes);
      expect(await port.open(createDraft(), TTL)).toMatchObject({
        isNew: false,
        opened: { id: opened.id, status: 'approved', decision: yes },
      });
      const uses = await Promise.all(Array.from({ length: 5 }, () => port.use(opened.id)));
      expect(uses.filter(Boolean)).toHaveLength(1);
      expect(await port.find(opened.id)).toMatchObject({ status: 'used' });
      const next = await port.open(createDraft(), TTL);
      expect(next).toMatchObject({ isNew: true, opened: { status: 'pending' } });
      expect(next.opened.id).not.toBe(opened.id);
    });

    it('never lets a denial be used, and keeps it for the next request', async () => {
      const { port } = await make();
      const { opened } = await port.open(createDraft(), TTL);
      await port.decide(opened.id, no);
      expect(await port.use(opened.id)).toBe(false);
      expect(await port.open(createDraft(), TTL)).toMatchObject({
        isNew: false,
        opened: { status: 'denied', decision: no },
      });
    });

    it('forgets a case after its time: it can be neither decided nor used', async () => {
      const { port, pass } = await make();
      const { opened } = await port.open(createDraft(), TTL);
      await pass(TTL);
      expect(await port.decide(opened.id, yes)).toBe('unknown');
      expect(await port.find(opened.id)).toBeUndefined();
      expect(await port.use(opened.id)).toBe(false);
      expect((await port.open(createDraft(), TTL)).isNew).toBe(true);
    });

    it('gives an approval its whole time again from the decision on, and no more', async () => {
      const { port, pass } = await make();
      const { opened } = await port.open(createDraft(), TTL);
      await pass(TTL - 10_000);
      await port.decide(opened.id, yes);
      await pass(TTL - 10_000);
      expect(await port.find(opened.id)).toMatchObject({ status: 'approved' });
      await pass(10_001);
      expect(await port.use(opened.id)).toBe(false);
    });

    it('lists the undecided cases of one tenant', async () => {
      const { port } = await make();
      const of = (tenant: string | number | null, subject: string) =>
        port.open(createDraft({ subject, requester: { ...createDraft().requester, tenant } }), TTL);
      const first = await of('acme', 'a');
      const second = await of('acme', 'b');
      for (const [tenant, subject] of [
        ['other', 'c'],
        [null, 'd'],
        [7, 'e'],
        ['7', 'f'],
      ] as const)
        await of(tenant, subject);
      await port.decide(second.opened.id, no);
      expect((await port.listPending('acme')).map(({ id }) => id)).toEqual([first.opened.id]);
      for (const tenant of ['other', null, 7, '7']) expect(await port.listPending(tenant)).toHaveLength(1);
      expect(await port.listPending('nobody')).toEqual([]);
    });

    it('lists those after the first ones', async () => {
      const { port, pass } = await make();
      const opened = [];
      for (const subject of ['a', 'b', 'c']) {
        opened.push((await port.open(createDraft({ subject }), TTL)).opened.id);
        await pass(10);
      }
      const { tenant } = createDraft().requester;
      const list = async (skip?: number) => (await port.listPending(tenant, skip)).map(({ id }) => id);
      expect(await list()).toEqual(opened);
      expect(await list(1)).toEqual(opened.slice(1));
      expect(await list(3)).toEqual([]);
    });

    it('lets one requester have so many undecided cases and no more', async () => {
      const { port } = await make();
      const open = (subject: string, principal = 'key:1') =>
        port.open(createDraft({ subject, requester: { ...createDraft().requester, principal } }), TTL);
      const cases = [];
      for (let count = 0; count < MAX_PENDING; count++) cases.push(await open(`s${count}`));
      await expect(open('one more')).rejects.toBeInstanceOf(ApprovalStoreFull);
      expect((await open('s0')).isNew).toBe(false);
      expect((await open('of another', 'key:9')).isNew).toBe(true);
      await port.decide(cases[0]?.opened.id ?? '', no);
      expect((await open('one more')).isNew).toBe(true);
    });

    it('forgets the decided cases of a requester beyond its share, the oldest decision first, and nobody else’s', async () => {
      const { port, pass } = await make();
      const open = async (subject: string, principal = 'key:1') =>
        (await port.open(createDraft({ subject, requester: { ...createDraft().requester, principal } }), TTL))
          .opened.id;
      const theirs = await open('theirs', 'key:9');
      await port.decide(theirs, yes);
      const undecided = await open('undecided');
      const ids = [];
      for (const subject of ['a', 'b', 'c', 'd', 'e']) ids.push(await open(subject));
      for (const id of ids) {
        await port.decide(id, id === ids[1] ? no : yes);
        await pass(10);
      }
      const statuses = await Promise.all(ids.map(async (id) => (await port.find(id))?.status));
      expect(statuses).toEqual([undefined, undefined, 'approved', 'approved', 'approved']);
      expect(await port.use(ids[0] ?? '')).toBe(false);
      expect(await port.decide(ids[0] ?? '', yes)).toBe('unknown');
      expect((await port.open(createDraft({ subject: 'b' }), TTL)).isNew).toBe(true);
      expect(await port.use(ids[4] ?? '')).toBe(true);
      expect((await port.find(undecided))?.status).toBe('pending');
      expect(await port.use(theirs)).toBe(true);
    });
  });
}
