import { Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Agent, compileAgentDefinition } from '#core';
import { type ChangeSet, MemoryChangeSets } from '#data';
import { LOOK_INTERVAL, watchSet } from './watched-set.js';

const SET = {
  id: 's1',
  kind: 'proposed',
  state: 'submitted',
  revision: 1,
  owner: { principal: 'ada', tenant: null, agent: 'support' },
  openedAt: 0,
  expiresAt: Number.MAX_SAFE_INTEGER,
  deletedAt: Number.MAX_SAFE_INTEGER,
  entries: [],
  next: 1,
} as unknown as ChangeSet;

let sets: MemoryChangeSets;
let messages: Subject<Record<string, unknown>>;
let reported: number;
beforeEach(async () => {
  vi.useFakeTimers();
  sets = new MemoryChangeSets();
  messages = new Subject();
  reported = 0;
  await sets.create(SET);
});
afterEach(() => void vi.useRealTimers());

const bus = { messages: () => messages } as never;
const support = compileAgentDefinition('support');
const watch = (principal = 'ada') =>
  watchSet('s1', new Agent({ definition: support, principal }), sets, { bus }).subscribe(
    () => (reported += 1),
  );
const apply = async (revision: number) => {
  expect(await sets.change('s1', revision, { state: 'applied' })).toBe(true);
};
const pass = (intervals: number) => vi.advanceTimersByTimeAsync(intervals * LOOK_INTERVAL);

describe('A change set that is watched', () => {
  it('is reported once per change that its replica reported', async () => {
    const watching = watch();
    await pass(1);
    await apply(1);
    messages.next({ set: 's1' });
    messages.next({ set: 'another' });
    await pass(0);
    expect(reported).toBe(1);
    await pass(3);
    expect(reported).toBe(1);
    watching.unsubscribe();
  });

  it('is reported although its replica ended between the change and the message', async () => {
    const watching = watch();
    await pass(1);
    messages.next({ set: 's1' });
    await pass(0);
    await apply(1);
    await pass(1);
    expect(reported).toBe(2);
    await pass(3);
    expect(reported).toBe(2);
    watching.unsubscribe();
  });

  it('is reported once its store answers again, and not because it did not', async () => {
    const watching = watch();
    await pass(1);
    const away = vi.spyOn(sets, 'find').mockRejectedValue(new Error('away'));
    await pass(2);
    expect(reported).toBe(0);
    await apply(1);
    away.mockRestore();
    await pass(1);
    expect(reported).toBe(1);
    watching.unsubscribe();
    await apply(2);
    await pass(2);
    expect(reported).toBe(1);
  });

  it('is not reported to another caller, whatever happens to it', async () => {
    const watching = watch('bob');
    await pass(1);
    await apply(1);
    messages.next({ set: 's1' });
    await pass(2);
    expect(reported).toBe(0);
    watching.unsubscribe();
  });
});
