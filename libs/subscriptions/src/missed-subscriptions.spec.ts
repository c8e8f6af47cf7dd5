import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Refusal, Refused, refusals } from '#core';
import { DELIVERIES } from './testing/lossy-bus.js';
import { admin, createSignedIn, type Replica, WatchedPosts } from './testing/subscriptions.fixture.js';

const SOON = { timeout: 20_000, interval: 10 };
const POSTS = 'parse://Post/count';
const SAMPLES = 'parse://Post/samples';

let watched: WatchedPosts;
let isAway: boolean;
/** Why rights are not read then. */
let refusal: Refusal;
/** How often rights were not read. */
let missed: number;
const replica = () =>
  watched.replica({ debounce: 0 }, [], (agent) => {
    if (isAway) missed += 1;
    if (isAway) throw new Refused(refusal);
    return agent;
  });
beforeEach(async () => {
  isAway = false;
  refusal = refusals.parseError('the rights cannot be read');
  missed = 0;
  watched = await WatchedPosts.open();
});
afterEach(() => watched.close());

const updates = (session = 's') => watched.streams.listUpdates(session);
const holder = () => watched.store.holder('s');

describe('a subscription that is stored', () => {
  it.each([refusals.parseError('the rights cannot be read'), refusals.cancelled()])(
    'is watched at the next look when its rights could not be read as the stream opened: $code',
    async (why) => {
      refusal = why;
      const here = await replica();
      await here.subscribe('s', POSTS, admin());
      isAway = true;
      watched.streams.listen('s', admin());
      await vi.waitFor(() => expect(missed).toBeGreaterThan(0), SOON);
      await here.manager.look();
      expect(here.manager.watches).toBe(0);
      isAway = false;
      await here.manager.look();
      expect(updates()).toEqual([POSTS]);
      await watched.create('Post', {});
      await vi.waitFor(() => expect(updates()).toEqual([POSTS, POSTS]), SOON);
    },
  );

  it('is watched by itself, without another request of the client', async () => {
    const here = await replica();
    await here.subscribe('s', POSTS, admin());
    isAway = true;
    watched.streams.listen('s', admin());
    await vi.waitFor(() => expect(missed).toBeGreaterThan(0), SOON);
    isAway = false;
    await vi.waitFor(() => expect(updates()).toEqual([POSTS]), SOON);
  }, 30_000);

  it('is watched where the stream is when the store no longer knows where that is', async () => {
    const [here, there] = [await replica(), await replica()];
    watched.streams.listen('s', admin(), 1);
    await vi.waitFor(async () => expect(await holder()).toBeDefined(), SOON);
    await watched.store.forget('s');
    expect(await here.subscribe('s', POSTS, admin())).toBe(true);
    await there.manager.look();
    expect(updates()).toEqual([POSTS]);
  });

  it('is watched no more by the replica that missed that the stream went elsewhere', async () => {
    const [here, there] = [await replica(), await replica()];
    watched.streams.listen('s', admin());
    await here.subscribe('s', POSTS, admin());
    watched.bus.delivery = 'never';
    watched.streams.listen('s', admin(), 1);
    await vi.waitFor(() => expect(there.manager.watches).toBe(1), SOON);
    expect(here.manager.watches).toBe(1);
    await here.manager.look();
    expect(here.manager.watches).toBe(0);
    expect(there.manager.watches).toBe(1);
  });

  it('is watched when it is its turn, where there are more streams than one look asks for', async () => {
    const here = await replica();
    const sessions = Array.from({ length: 600 }, (_, n) => `s${n}`);
    for (const session of sessions) await here.subscribe(session, POSTS, admin(session));
    isAway = true;
    for (const session of sessions) watched.streams.listen(session, admin(session));
    await vi.waitFor(() => expect(missed).toBe(600), SOON);
    isAway = false;
    await here.manager.look();
    await here.manager.look();
    expect(here.manager.watches).toBe(600);
  });

  it('is removed at the next look where the listener may not watch it', async () => {
    const here = await replica();
    await here.subscribe('s', 'parse://Payroll/count', admin());
    isAway = true;
    watched.streams.listen('s', createSignedIn('ada'));
    await vi.waitFor(() => expect(missed).toBeGreaterThan(0), SOON);
    isAway = false;
    await here.manager.look();
    expect(await watched.store.of('s')).toEqual([]);
  });
});

type Step = (replicas: readonly Replica[]) => Promise<unknown>;
const at = fc.nat(1);
const uri = fc.constantFrom(POSTS, SAMPLES);
/** A request that waits for a message that is lost is answered after seconds: the next step does not wait for it. */
const begin = (work: Promise<unknown>): Promise<unknown> =>
  Promise.race([work.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 20))]);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ at, uri }).map((given): Step => {
    return (replicas) => begin((replicas[given.at] as Replica).subscribe('s', given.uri, admin()));
  }),
  fc.record({ at, uri }).map((given): Step => {
    return (replicas) => begin((replicas[given.at] as Replica).unsubscribe('s', given.uri));
  }),
  at.map(
    (where): Step =>
      async () =>
        watched.streams.listen('s', admin(), where),
  ),
  at.map(
    (where): Step =>
      async () =>
        watched.streams.sendBack('s', where),
  ),
  fc.boolean().map(
    (away): Step =>
      async () =>
        void (isAway = away),
  ),
  fc.constant<Step>(() => watched.store.forget('s')),
  fc.constantFrom(...DELIVERIES).map(
    (delivery): Step =>
      async () =>
        void (watched.bus.delivery = delivery),
  ),
);

describe('whatever was lost, doubled or away before', () => {
  it('every stored subscription of an open stream reports the next change', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), at, async (steps, last) => {
        const own = await WatchedPosts.open();
        watched = own;
        const replicas = [await replica(), await replica()];
        for (const one of steps) await one(replicas);
        isAway = false;
        watched.bus.delivery = 'once';
        watched.streams.listen('s', admin(), last);
        for (let round = 0; round < 2; round += 1) for (const { manager } of replicas) await manager.look();
        const stored = await watched.store.of('s');
        const before = updates().length;
        await watched.create('Post', {});
        await vi.waitFor(
          () => expect(updates().slice(before)).toEqual(expect.arrayContaining([...stored])),
          SOON,
        );
        await own.close();
      }),
      { numRuns: 40 },
    );
  }, 120_000);
});
