import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Agent } from '#core';
import type { ListenEvent } from '#dispatcher';
import {
  createActing,
  admin,
  createContext,
  WatchedPosts,
  type Replica,
  createSignedIn,
  tenant,
} from './testing/subscriptions.fixture.js';

const SOON = { timeout: 20_000, interval: 10 };
const POSTS = 'parse://Post/count';
const SAMPLES = 'parse://Post/samples';

let subscriptionsUnderTest: WatchedPosts;
let here: Replica;
beforeEach(async () => {
  subscriptionsUnderTest = await WatchedPosts.open();
  here = await subscriptionsUnderTest.replica();
});
afterEach(async () => {
  await subscriptionsUnderTest.close();
  if (subscriptionsUnderTest.warnings.length > 0) throw new Error(subscriptionsUnderTest.warnings.join('\n'));
});

const updates = (session: string) => subscriptionsUnderTest.streams.listUpdates(session);
const expectUpdates = (session: string, count: number) =>
  vi.waitFor(() => expect(updates(session)).toHaveLength(count), SOON);

/** Subscribes with a stream that is open already. */
async function subscribeTo(
  session: string,
  agent: Parameters<Replica['subscribe']>[2],
  uri = POSTS,
): Promise<void> {
  subscriptionsUnderTest.streams.listen(session, agent);
  expect(await here.subscribe(session, uri, agent)).toBe(true);
}

describe('a subscription', () => {
  it('reports rows that are created, changed and deleted, by the address alone', async () => {
    await subscribeTo('s', admin());
    const id = await subscriptionsUnderTest.create('Post', { title: 'one' });
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.update('Post', id, { title: 'two' });
    await expectUpdates('s', 2);
    await subscriptionsUnderTest.delete('Post', id);
    await expectUpdates('s', 3);
    expect(subscriptionsUnderTest.streams.sent[0]).toEqual({
      session: 's',
      notice: { method: 'notifications/resources/updated', params: { uri: POSTS } },
    });
  });

  it('exists once, however often it is requested', async () => {
    await subscribeTo('s', admin());
    expect(await here.subscribe('s', POSTS, admin())).toBe(true);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 2);
  });

  it('ends with unsubscribe, which may be repeated', async () => {
    await subscribeTo('s', admin());
    await subscribeTo('s', admin(), SAMPLES);
    await here.unsubscribe('s', POSTS);
    await here.unsubscribe('s', POSTS);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 1);
    expect(updates('s')).toEqual([SAMPLES]);
  });

  it('ends when the session is left without a stream, and leaves nothing behind', async () => {
    await subscribeTo('s', admin());
    await subscribeTo('t', admin());
    subscriptionsUnderTest.streams.hangUp('s');
    subscriptionsUnderTest.streams.listen('s', admin());
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('t', 1);
    expect(updates('s')).toEqual([]);
    expect(await subscriptionsUnderTest.store.of('s')).toEqual([]);
  });

  it('that was requested before there is a stream begins with the stream', async () => {
    expect(await here.subscribe('s', POSTS, admin())).toBe(true);
    subscriptionsUnderTest.streams.listen('s', admin());
    await vi.waitFor(async () => {
      await subscriptionsUnderTest.create('Post', {});
      expect(updates('s').length).toBeGreaterThan(0);
    }, SOON);
  });

  it('is not confirmed when the session ended meanwhile', async () => {
    subscriptionsUnderTest.streams.listen('s', admin());
    const asking = here.subscribe('s', POSTS, admin());
    const add = subscriptionsUnderTest.store.add.bind(subscriptionsUnderTest.store);
    vi.spyOn(subscriptionsUnderTest.store, 'add').mockImplementation(async (...entry) => {
      const outcome = await add(...entry);
      subscriptionsUnderTest.streams.hangUp('s');
      return outcome;
    });
    expect(await asking).toBe(false);
    expect(await subscriptionsUnderTest.store.of('s')).toEqual([]);
  });

  it('combines the changes within the interval in one update', async () => {
    here = await subscriptionsUnderTest.replica({ debounce: 0.25 });
    subscriptionsUnderTest.streams.listen('d', admin(), 1);
    await here.subscribe('d', POSTS, admin());
    const made = Promise.all(Array.from({ length: 20 }, () => subscriptionsUnderTest.create('Post', {})));
    await made;
    await vi.waitFor(() => expect(updates('d').length).toBeGreaterThan(0), SOON);
    expect(updates('d').length).toBeLessThan(20);
  });
});

describe('who may subscribe', () => {
  it.each([
    ['parse://Post', 'Invalid resource URI: parse://Post. Expected parse://<Class>/{count|samples}.'],
    [
      'parse://Post/counts',
      'Invalid resource URI: parse://Post/counts. Expected parse://<Class>/{count|samples}.',
    ],
    ['PARSE://Post/count', 'Invalid resource URI'],
    ['parse://Post/count\n', 'Invalid resource URI'],
    ['', 'Invalid resource URI'],
    ['parse://Post/schema', "Resource kind 'schema' is not subscribable"],
  ])('nobody to %j', async (uri, message) => {
    await expect(here.subscribe('s', uri, admin())).rejects.toMatchObject({
      name: 'ProtocolError',
      code: -32602,
      message: expect.stringContaining(message) as string,
    });
  });

  it.each([undefined, ''])('nobody without a session: %j', async (session) => {
    await expect(here.subscribe(session, POSTS, admin())).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('initialize') as string,
    });
  });

  it.each([
    ['a hidden class', 'parse://Secret/count', admin(), 'access_denied'],
    ['a class that does not exist', 'parse://Nothing/count', admin(), 'invalid_argument'],
    ['a tenant class without a tenant', POSTS, { ...tenant('x'), tenantId: null }, 'access_denied'],
    ['a class that permits it to nobody', 'parse://Payroll/count', createSignedIn('ada'), 'access_denied'],
    ['a role that does not exist', POSTS, createActing({ kind: 'aclRole', role: 'none' }), 'access_denied'],
  ])('no agent to %s, as reading would refuse it', async (_, uri, agent, code) => {
    subscriptionsUnderTest.streams.listen('s', agent);
    await expect(here.subscribe('s', uri, agent)).rejects.toMatchObject({ refusal: { code } });
    expect(await subscriptionsUnderTest.store.of('s')).toEqual([]);
  });

  it('nobody whose session token is not known', async () => {
    await expect(here.subscribe('s', POSTS, createSignedIn('mallory'))).rejects.toMatchObject({
      name: 'Unauthorized',
    });
  });

  it('users and roles that an agent acts for, over the changes of the database', async () => {
    await subscribeTo('u', createActing({ kind: 'aclUser', userId: 'ada' }));
    await subscriptionsUnderTest.create('Post', { title: 'x', ACL: { ada: { read: true } } });
    await expectUpdates('u', 1);
  });

  it('up to the limit of a session, and of sessions', async () => {
    here = await subscriptionsUnderTest.replica({ maxPerSession: 1, maxSessions: 1 });
    expect(await here.subscribe('s', POSTS, admin())).toBe(true);
    await expect(here.subscribe('s', SAMPLES, admin())).rejects.toMatchObject({
      message: 'Session subscription limit reached (1). Unsubscribe from a resource before adding another.',
    });
    await expect(here.subscribe('t', POSTS, admin())).rejects.toMatchObject({
      message: 'Global subscription session limit reached (1). Try again later.',
    });
    await here.unsubscribe('s', POSTS);
    expect(await here.subscribe('t', POSTS, admin())).toBe(true);
  });

  it('leaves nothing behind after an attempt that failed', async () => {
    here = await subscriptionsUnderTest.replica({ maxSessions: 1 });
    await expect(here.subscribe('s', 'parse://Secret/count', admin())).rejects.toMatchObject({
      refusal: { code: 'access_denied' },
    });
    expect(await here.subscribe('t', POSTS, admin())).toBe(true);
  });
});

describe('a row that an agent may not read', () => {
  /**
   * The control client sees everything: once it was notified of a change, the change has been processed for all clients. One
   * change is processed at a time, and a last one that both clients see proves that there was no notification before it.
   */
  const expectSilence = async (
    session: string,
    changes: readonly (() => Promise<unknown>)[],
    visible: () => Promise<unknown>,
  ) => {
    await subscribeTo('witness', admin());
    let seen = 0;
    for (const change of changes) {
      await change();
      seen += 1;
      await expectUpdates('witness', seen);
    }
    expect(updates(session)).toEqual([]);
    await visible();
    await vi.waitFor(() => expect(updates(session)).not.toEqual([]), SOON);
    expect(updates(session)).toHaveLength(1);
  };

  it('of another tenant is never reported, whatever happens to it', async () => {
    await subscribeTo('s', tenant('acme'));
    let foreign = '';
    await expectSilence(
      's',
      [
        async () => (foreign = await subscriptionsUnderTest.create('Post', { org: 'globex' })),
        () => subscriptionsUnderTest.update('Post', foreign, { title: 'x' }),
        () => subscriptionsUnderTest.delete('Post', foreign),
      ],
      () => subscriptionsUnderTest.create('Post', { org: 'acme' }),
    );
  });

  it('by the canonical filter is never reported, not even to the master key', async () => {
    await subscribeTo('s', admin());
    for (let made = 0; made < 10; made += 1) {
      await subscriptionsUnderTest.delete(
        'Post',
        await subscriptionsUnderTest.create('Post', { archived: true }),
      );
    }
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 2);
  });

  it('by its own rights is never reported', async () => {
    await subscribeTo('s', createSignedIn('bob'));
    let private_ = '';
    await expectSilence(
      's',
      [
        async () =>
          (private_ = await subscriptionsUnderTest.create('Post', { ACL: { ada: { read: true } } })),
        () => subscriptionsUnderTest.update('Post', private_, { title: 'x' }),
        () => subscriptionsUnderTest.update('Post', private_, { ACL: {} }),
        () => subscriptionsUnderTest.delete('Post', private_),
      ],
      () => subscriptionsUnderTest.create('Post', { ACL: { bob: { read: true } } }),
    );
  });

  it('that names another user in the field of class permissions is never reported', async () => {
    const owner = (objectId: string) => ({ owner: { __type: 'Pointer', className: '_User', objectId } });
    await subscribeTo('s', createSignedIn('bob'), 'parse://Diary/samples');
    await subscribeTo('w', admin(), 'parse://Diary/samples');
    const foreign = await subscriptionsUnderTest.create('Diary', owner('ada'));
    await expectUpdates('w', 1);
    await subscriptionsUnderTest.delete('Diary', foreign);
    await expectUpdates('w', 2);
    expect(updates('s')).toEqual([]);
    await subscriptionsUnderTest.create('Diary', owner('bob'));
    await expectUpdates('s', 1);
  });

  it('is reported when its rights make it visible, and when they hide it', async () => {
    await subscribeTo('s', createSignedIn('bob'));
    const id = await subscriptionsUnderTest.create('Post', { ACL: { ada: { read: true } } });
    await subscriptionsUnderTest.update('Post', id, { ACL: { bob: { read: true } } });
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.update('Post', id, { ACL: { ada: { read: true } } });
    await expectUpdates('s', 2);
  });

  it('is reported when a row that could be read is deleted', async () => {
    const id = await subscriptionsUnderTest.create('Post', { org: 'acme' });
    await subscribeTo('s', tenant('acme'));
    await subscriptionsUnderTest.delete('Post', id);
    await expectUpdates('s', 1);
  });
});

describe('rights', () => {
  it('are checked again before each update: a session that has ended receives nothing more', async () => {
    await subscribeTo('s', createSignedIn('bob'));
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.endSession('r:bob');
    await subscribeTo('witness', admin());
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('witness', 1);
    await vi.waitFor(async () => expect(await subscriptionsUnderTest.store.of('s')).toEqual([]), SOON);
    expect(updates('s')).toHaveLength(1);
  });
});

describe('a session whose stream a weaker agent of the same person holds', () => {
  const PAYROLL = 'parse://Payroll/count';

  it('watches nothing for the stronger one that the listener may not read', async () => {
    subscriptionsUnderTest.streams.listen('s', createSignedIn('ada'));
    await expect(here.subscribe('s', PAYROLL, admin())).rejects.toMatchObject({
      refusal: { code: 'access_denied' },
    });
    expect(await subscriptionsUnderTest.store.of('s')).toEqual([]);
  });

  it('watches on only what the newer listener may read', async () => {
    await subscribeTo('s', admin(), PAYROLL);
    await here.subscribe('s', POSTS, admin());
    subscriptionsUnderTest.streams.listen('s', createSignedIn('ada'));
    await vi.waitFor(async () => expect(await subscriptionsUnderTest.store.of('s')).toEqual([POSTS]), SOON);
    await vi.waitFor(() => expect(here.manager.watches).toBe(1), SOON);
  });
});

describe('replicas', () => {
  it('watch where the stream is, whichever replica receives the request', async () => {
    const there = await subscriptionsUnderTest.replica();
    subscriptionsUnderTest.streams.listen('s', admin(), 1);
    await vi.waitFor(async () => expect(await subscriptionsUnderTest.store.holder('s')).toBeDefined(), SOON);
    expect(await here.subscribe('s', POSTS, admin())).toBe(true);
    here.manager.close();
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 1);
    await there.unsubscribe('s', POSTS);
    await subscribeThere(there);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('t', 1);
    expect(updates('s')).toHaveLength(1);
  });

  const subscribeThere = async (there: Replica) => {
    subscriptionsUnderTest.streams.listen('t', admin(), 1);
    await there.subscribe('t', POSTS, admin());
  };

  it('refuse for each other what the owner of the stream may not watch', async () => {
    await subscriptionsUnderTest.replica();
    subscriptionsUnderTest.streams.listen('s', createSignedIn('ada'), 1);
    await vi.waitFor(async () => expect(await subscriptionsUnderTest.store.holder('s')).toBeDefined(), SOON);
    await expect(here.subscribe('s', 'parse://Payroll/count', admin())).rejects.toMatchObject({
      refusal: { code: 'access_denied' },
    });
    expect(await subscriptionsUnderTest.store.of('s')).toEqual([]);
  });

  it('end for each other what is unsubscribed', async () => {
    await subscriptionsUnderTest.replica();
    subscriptionsUnderTest.streams.listen('s', admin(), 1);
    await vi.waitFor(async () => expect(await subscriptionsUnderTest.store.holder('s')).toBeDefined(), SOON);
    await here.subscribe('s', POSTS, admin());
    await here.subscribe('s', SAMPLES, admin());
    await here.unsubscribe('s', POSTS);
    await vi.waitFor(async () => {
      const before = updates('s').length;
      await subscriptionsUnderTest.create('Post', {});
      await expectUpdates('s', before + 1);
    }, SOON);
    expect(updates('s').at(-1)).toBe(SAMPLES);
  });

  it('continue for one that died, and report that changes may have been missed', async () => {
    subscriptionsUnderTest.streams.listen('s', admin());
    await here.subscribe('s', POSTS, admin());
    here.manager.close();
    await subscriptionsUnderTest.replica();
    subscriptionsUnderTest.streams.listen('s', admin(), 1);
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 2);
  });

  it('leave a session to the replica that holds its newer stream', async () => {
    subscriptionsUnderTest.streams.listen('s', admin());
    await here.subscribe('s', POSTS, admin());
    await subscriptionsUnderTest.replica();
    subscriptionsUnderTest.streams.listen('s', admin(), 1);
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 2);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 3);
  });
});

describe('listening', () => {
  const listen = (agent: Parameters<typeof createContext>[0], ...uris: string[]) => {
    const events: ListenEvent[] = [];
    const subscription = here.manager
      .listen(uris, createContext(agent))
      .subscribe((event) => events.push(event));
    return { events, subscription };
  };

  it('sends first which of the requested resources are watched, and then which of them changed', async () => {
    const { events, subscription } = listen(
      tenant('acme'),
      POSTS,
      'parse://Secret/count',
      'nonsense',
      SAMPLES,
    );
    await vi.waitFor(() => expect(events).toEqual([{ watched: [POSTS, SAMPLES] }]), SOON);
    await subscriptionsUnderTest.create('Post', { org: 'globex' });
    await subscriptionsUnderTest.create('Post', { org: 'acme' });
    await vi.waitFor(() => expect(events).toHaveLength(3), SOON);
    expect(events.slice(1)).toEqual(expect.arrayContaining([{ updated: POSTS }, { updated: SAMPLES }]));
    subscription.unsubscribe();
  });

  it('watches no more addresses than a session could, and refuses too many requests', async () => {
    here = await subscriptionsUnderTest.replica({ maxPerSession: 1, maxSessions: 1 });
    const { events, subscription } = listen(admin(), POSTS, SAMPLES);
    await vi.waitFor(() => expect(events).toEqual([{ watched: [POSTS] }]), SOON);
    expect(() => listen(admin(), POSTS)).toThrow(
      'Global subscription session limit reached (1). Try again later.',
    );
    subscription.unsubscribe();
    const again = listen(admin(), POSTS);
    await vi.waitFor(() => expect(again.events).toHaveLength(1), SOON);
    again.subscription.unsubscribe();
  });
});

describe('an agent that changes while it is subscribed', () => {
  let asNow: (agent: Agent) => Agent | null;
  beforeEach(async () => {
    asNow = (agent) => agent;
    here = await subscriptionsUnderTest.replica({ debounce: 0 }, [], (agent) => asNow(agent));
  });
  /** On the replica that sends the request. */
  async function subscribeThere(session: string, agent: Parameters<Replica['subscribe']>[2]) {
    subscriptionsUnderTest.streams.listen(session, agent, 1);
    expect(await here.subscribe(session, POSTS, agent)).toBe(true);
  }

  it('receives updates by its current rights', async () => {
    await subscribeThere('s', tenant('acme'));
    await subscribeThere('witness', admin());
    await subscriptionsUnderTest.create('Post', { org: 'acme' });
    await expectUpdates('s', 1);
    await expectUpdates('witness', 1);
    asNow = (agent) => (agent.principal === 'acme' ? new Agent(tenant('globex')) : agent);
    await subscriptionsUnderTest.create('Post', { org: 'globex' });
    await expectUpdates('s', 2);
    await expectUpdates('witness', 2);
    await subscriptionsUnderTest.create('Post', { org: 'acme' });
    await expectUpdates('witness', 3);
    await subscriptionsUnderTest.create('Post', { org: 'globex' });
    await expectUpdates('witness', 4);
    await expectUpdates('s', 3);
  });

  it('receives nothing more once it is no longer configured, and loses its subscriptions', async () => {
    await subscribeThere('s', admin('s'));
    await subscribeThere('witness', admin('witness'));
    asNow = (agent) => (agent.principal === 's' ? null : agent);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('witness', 1);
    await vi.waitFor(async () => expect(await subscriptionsUnderTest.store.of('s')).toEqual([]), SOON);
    expect(updates('s')).toEqual([]);
    await expect(here.subscribe('s', SAMPLES, admin('s'))).rejects.toMatchObject({ name: 'Unauthorized' });
  });
});

describe('a session whose stream was ended on this side', () => {
  it('keeps its subscriptions when its client reconnects, and is notified of changes it may have missed', async () => {
    await subscribeTo('s', admin());
    await subscribeTo('witness', admin());
    subscriptionsUnderTest.streams.sendBack('s');
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('witness', 1);
    expect(updates('s')).toEqual([]);
    expect(await subscriptionsUnderTest.store.of('s')).toEqual([POSTS]);
    subscriptionsUnderTest.streams.listen('s', admin());
    await expectUpdates('s', 1);
    await subscriptionsUnderTest.create('Post', {});
    await expectUpdates('s', 2);
  });
});
