import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AuditEvent, ChangeSetEvent } from '#audit';
import { Agent, compileAgentDefinition, deriveAgent, McpRequest, Refused } from '#core';
import { MemoryChangeSets, type StoredEntry } from '#data';
import { processSecret } from '#dispatcher';
import { processState } from '#state';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal } from './change-seal.js';
import { OwnedSets } from './owned-sets.js';
import { OverdueSets } from './overdue-sets.js';
import { SetCases } from './set-cases.js';
import { showSet } from './shown-sets.js';

const HOUR = 3_600_000;
const SETTINGS = {
  record: 'proposed',
  keep: 24 * HOUR,
  undo: 'operators',
  maxEntries: 5,
  maxBytes: 1_000_000,
  openFor: HOUR,
} as const;

const definition = compileAgentDefinition('support', { permissions: 'admin', writes: 'proposed' });
const requestOf = (principal: string, tenantId: string | null = null) =>
  new McpRequest(new Agent({ definition, principal, tenantId }));
const ENTRY: StoredEntry = {
  entry: 1,
  operation: 'update',
  className: 'Order',
  objectId: 'o1',
  fields: ['state'],
  sealed: 'sealed',
};

const CASE = {
  requester: { principal: 'ada', agent: 'support', tenant: null },
  tool: 'submit_changes',
  permission: 'write',
  subject: '',
  holdsFor: 'digest',
  preview: {},
} as const;

describe('The change sets of an owner', () => {
  let steps: string[];
  let owned: OwnedSets;
  let sets: MemoryChangeSets;
  let shared: ReturnType<typeof processState>;
  const ada = requestOf('ada');
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
    steps = [];
    const audit = { recordEvent: (event: AuditEvent) => void steps.push((event as ChangeSetEvent).step) };
    shared = processState();
    sets = new MemoryChangeSets();
    const records = new ChangeRecords(audit, shared);
    owned = new OwnedSets(sets, records, new SetCases(shared), SETTINGS, { clock: Date.now });
  });
  afterEach(() => void vi.useRealTimers());

  it('have ids that a command takes for no option', () => {
    const ids = Array.from({ length: 2_000 }, () => owned.newId());
    expect(ids.filter((id) => !/^[A-Za-z0-9_][A-Za-z0-9_-]{19}$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('are one open set, whichever call opens it', async () => {
    const opened = await Promise.all([owned.open(ada), owned.open(ada), owned.open(ada)]);
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
  });

  it('are those of the agent at the root for a sub-agent', async () => {
    const { id } = await owned.open(ada);
    const sub = new McpRequest(deriveAgent(ada.agent, { name: 'helper', permissions: 'admin' }));
    expect((await owned.open(sub)).id).toBe(id);
    expect(sub.agent.definition.writes).toBe('proposed');
  });

  it('do not exist for another principal, tenant or agent', async () => {
    const { id } = await owned.open(ada);
    const renamed = { ...definition, name: 'sales' };
    const other = new McpRequest(new Agent({ definition: renamed, principal: 'ada' }));
    for (const request of [requestOf('bob'), requestOf('ada', 'north'), other])
      await expect(owned.find(id, request)).rejects.toThrow('there is no such change set');
    for (const named of [undefined, null, 7, {}, 'nothing'])
      await expect(owned.find(named, ada)).rejects.toBeInstanceOf(Refused);
  });

  it('take no writes after their time, and lose the values of their rows', async () => {
    const { id } = await owned.open(ada);
    await owned.update(id, ada, () => ({ put: [ENTRY], next: 2 }));
    vi.setSystemTime(Date.now() + HOUR + 1);
    expect((await owned.list(ada, 1)).map(showSet)).toMatchObject([{ state: 'expired' }]);
    expect(await owned.list(ada, 1, { states: ['open', 'submitted'] })).toEqual([]);
    expect(await owned.findOpen(ada)).toBe(null);
    const expired = await owned.find(id, ada);
    expect(expired).toMatchObject({ state: 'expired', entries: [{ entry: 1 }] });
    expect(expired.entries[0]).not.toHaveProperty('sealed');
    expect(steps).toEqual(['expired']);
    expect((await owned.open(ada)).id).not.toBe(id);
  });

  it('are found among those that have expired from the end of their time on', async () => {
    const { id } = await owned.open(ada);
    const expired = { states: ['expired'], limit: 10 } as const;
    expect(await owned.listNow(expired)).toEqual([]);
    vi.setSystemTime(Date.now() + HOUR + 1);
    expect((await owned.listNow(expired)).map((set) => set.id)).toEqual([id]);
  });

  it('end by the clock that replicas share, whatever the clock of a machine says', async () => {
    const clock = { now: Date.now() };
    const records = new ChangeRecords({ recordEvent: () => undefined }, shared);
    const steady = new OwnedSets(sets, records, new SetCases(shared), SETTINGS, { clock: () => clock.now });
    const { id } = await steady.open(ada);
    for (const jump of [3 * HOUR, -3 * HOUR]) {
      vi.setSystemTime(clock.now + jump);
      expect((await steady.find(id, ada)).state).toBe('open');
    }
    clock.now += HOUR + 1;
    expect((await steady.find(id, ada)).state).toBe('expired');
  });

  it('are refused with rows that no document holds', async () => {
    const sealed = 'x'.repeat(6 * 1_048_576);
    const entries = [1, 2, 3].map((entry) => ({ ...ENTRY, entry, sealed }));
    const members = { kind: 'undo', state: 'submitted', entries, next: 4 } as const;
    await expect(owned.create(ada, members)).rejects.toThrow('one change set holds at most');
    await owned.create(ada, { ...members, entries: entries.slice(0, 2) });
  });

  it('lose the values of their rows when they are denied or discarded', async () => {
    for (const state of ['denied', 'discarded'] as const) {
      const { id } = await owned.open(ada);
      await owned.update(id, ada, () => ({ put: [ENTRY], next: 2 }));
      const ended = await owned.end(id, ada, state);
      expect(ended.state).toBe(state);
      expect(ended.entries[0]).not.toHaveProperty('sealed');
    }
  });

  it('are recorded as ended once, however many calls end them at once', async () => {
    const { id } = await owned.open(ada);
    await owned.update(id, ada, () => ({ put: [ENTRY], next: 2 }));
    const ended = await Promise.all([1, 2, 3].map(() => owned.end(id, ada, 'discarded')));
    expect(ended.map(({ state }) => state)).toEqual(['discarded', 'discarded', 'discarded']);
    expect(steps).toEqual(['discarded']);
  });

  it('are ended without anybody who looks at them, once by several processes', async () => {
    const { id } = await owned.open(ada);
    await owned.update(id, ada, () => ({ put: [ENTRY], next: 2 }));
    const processes = [new OverdueSets(owned), new OverdueSets(owned)];
    const endAll = () => Promise.all(processes.map((overdue) => overdue.end()));
    await endAll();
    expect(await sets.find(id)).toMatchObject({ state: 'open', entries: [ENTRY] });
    vi.setSystemTime(Date.now() + HOUR + 1);
    await endAll();
    await endAll();
    const { sealed: _sealed, ...bare } = ENTRY;
    expect(await sets.find(id)).toMatchObject({ state: 'expired', entries: [bare] });
    expect(steps).toEqual(['expired']);
  });

  it('leave no case that waits, however many others do', async () => {
    const { id } = await owned.open(ada);
    const openCase = (subject: string, changeSet?: string) =>
      shared.approvals.open(
        {
          ...CASE,
          subject,
          requester: { ...CASE.requester, principal: subject },
          ...(changeSet && { changeSet }),
        },
        HOUR,
      );
    for (let other = 0; other < 450; other += 1) await openCase(`other ${other}`);
    const { opened } = await openCase('own', id);
    await owned.end(id, ada, 'discarded');
    expect(await shared.approvals.find(opened.id)).toMatchObject({
      status: 'denied',
      decision: { withdrawn: true, by: 'ada' },
    });
    expect(await shared.approvals.countPending()).toBe(450);
  });

  it('keep every change of calls that come at once', async () => {
    const { id } = await owned.open(ada);
    await Promise.all(
      [1, 2, 3].map((entry) => owned.update(id, ada, () => ({ put: [{ ...ENTRY, entry }] }))),
    );
    expect((await owned.find(id, ada)).entries.map(({ entry }) => entry)).toEqual([1, 2, 3]);
  });
});

describe('The seal of an entry', () => {
  const change = {
    operation: 'update',
    className: 'Order',
    objectId: 'o1',
    fields: { state: 'secret' },
    before: 'cm93',
  } as const;

  it('hides the values, and opens for its set and number alone', async () => {
    const seal = new ChangeSeal(processSecret());
    const stored = await seal.seal('s1', 1, change);
    expect(JSON.stringify(stored)).not.toContain('secret');
    expect(await seal.open('s1', stored)).toEqual(change);
    await expect(seal.open('s2', stored)).rejects.toThrow('cannot be read any more');
    await expect(seal.open('s1', { ...stored, entry: 2 })).rejects.toThrow('cannot be read any more');
    await expect(new ChangeSeal(processSecret()).open('s1', stored)).rejects.toThrow(
      'cannot be read any more',
    );
  });
});
