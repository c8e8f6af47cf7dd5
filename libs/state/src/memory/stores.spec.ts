import { describe, expect, it } from 'vitest';
import { ProcessRateLimiters } from '#core';
import { approvalStoreContract, createDraft, TIGHT_DECIDED } from '../contracts/approval-store.contract.js';
import { budgetStoreContract } from '../contracts/budget-store.contract.js';
import { messageBusContract } from '../contracts/message-bus.contract.js';
import { oneTimeStoreContract, TIGHT_ONE_TIME } from '../contracts/one-time-store.contract.js';
import { handClock } from '../contracts/port-under-test.js';
import { rateLimitersContract } from '../contracts/rate-limiters.contract.js';
import { streamLogContract, TIGHT_LOG, TIGHT_STREAMS } from '../contracts/stream-log.contract.js';
import { subscriptionStoreContract } from '../contracts/subscription-store.contract.js';
import { TIGHT_RECORDS, versionedStoreContract } from '../contracts/versioned-store.contract.js';
import { ApprovalStoreFull } from '../ports/approvals.js';
import { SharedStateUnavailable } from '../ports/stores.js';
import {
  ProcessBudgetStore,
  ProcessMessageBus,
  ProcessOneTimeStore,
  ProcessVersionedStore,
} from './stores.js';
import { ProcessApprovalStore } from './approvals.js';
import { ProcessStreamLog, ProcessSubscriptionStore } from './sessions.js';

messageBusContract('ProcessMessageBus', () => {
  const bus = new ProcessMessageBus();
  return Promise.resolve([bus, bus]);
});
approvalStoreContract('ProcessApprovalStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessApprovalStore(1_000, now, TIGHT_DECIDED), pass };
});
oneTimeStoreContract('ProcessOneTimeStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessOneTimeStore(100, now, undefined, TIGHT_ONE_TIME), pass };
});
streamLogContract('ProcessStreamLog', () => {
  const { now, pass } = handClock();
  return { port: new ProcessStreamLog(TIGHT_LOG, 100, now, undefined, TIGHT_STREAMS), pass };
});
subscriptionStoreContract('ProcessSubscriptionStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessSubscriptionStore(undefined, 100, now), pass };
});
budgetStoreContract('ProcessBudgetStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessBudgetStore(100, now), pass };
});
rateLimitersContract('ProcessRateLimiters', () => {
  const { now, pass } = handClock();
  return { port: new ProcessRateLimiters(() => now() / 1000), pass };
});

versionedStoreContract('ProcessVersionedStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessVersionedStore(100, now, undefined, TIGHT_RECORDS), pass };
});

describe('ProcessApprovalStore', () => {
  const open = (store: ProcessApprovalStore, subject: string, principal: string) =>
    store.open(createDraft({ subject, requester: { ...createDraft().requester, principal } }), 60_000);

  it('lets the oldest decision of the requester with most give way, and no undecided case', async () => {
    const store = new ProcessApprovalStore(5);
    const openDecided = async (subject: string, principal: string) => {
      const { opened } = await open(store, subject, principal);
      await store.decide(opened.id, { approved: true, by: 'key:2', at: 1 });
      return opened.id;
    };
    const hers = await openDecided('hers', 'key:9');
    const his = [await openDecided('a', 'key:1'), await openDecided('b', 'key:1')];
    for (const subject of ['c', 'd', 'e']) await open(store, subject, `key:${subject}`);
    expect(await store.find(his[0] ?? '')).toBeUndefined();
    expect(await store.use(his[1] ?? '')).toBe(true);
    expect(await store.use(hers)).toBe(true);
    for (const subject of ['f', 'g']) await open(store, subject, `key:${subject}`);
    await expect(open(store, 'h', 'key:h')).rejects.toBeInstanceOf(ApprovalStoreFull);
    expect(await store.countPending()).toBe(5);
  });
});

describe('ProcessVersionedStore', () => {
  it('never lets a record give way to a new one', async () => {
    const { now, pass } = handClock();
    const store = new ProcessVersionedStore(1, now);
    await store.create('a', {}, 10_000);
    await expect(store.create('b', {}, 10_000)).rejects.toBeInstanceOf(SharedStateUnavailable);
    pass(10_000);
    expect(await store.create('b', {}, 10_000)).toBe(true);
  });
});

describe('ProcessOneTimeStore', () => {
  it('lets the oldest value go when there is no room, and never a claim', async () => {
    const { now, pass } = handClock();
    const store = new ProcessOneTimeStore(2, now);
    for (const key of ['a', 'b', 'c']) await store.keep(key, { key }, 60_000);
    expect(await store.take('a')).toBeUndefined();
    expect(await store.take('c')).toEqual({ key: 'c' });

    expect([await store.claim('a', 10_000), await store.claim('b', 60_000)]).toEqual([true, true]);
    await expect(store.claim('c', 60_000)).rejects.toBeInstanceOf(SharedStateUnavailable);
    expect(await store.claim('a', 60_000)).toBe(false);
    pass(10_000);
    expect(await store.claim('c', 60_000)).toBe(true);
    await expect(store.claim('d', 60_000)).rejects.toBeInstanceOf(SharedStateUnavailable);
  });

  it('refuses a size that holds nothing', () => {
    expect(() => new ProcessOneTimeStore(0)).toThrow(TypeError);
  });
});

describe('ProcessStreamLog', () => {
  it('forgets the stream written to longest ago first', async () => {
    const log = new ProcessStreamLog({}, 2);
    const entries = new Map<string, string>();
    for (const stream of ['a', 'b', 'a', 'c']) entries.set(stream, await log.append(stream, 'x'));
    expect(await log.after('b', entries.get('b') ?? '')).toBeUndefined();
    expect(await log.after('a', entries.get('a') ?? '')).toEqual([]);
    expect(await log.after('c', entries.get('c') ?? '')).toEqual([]);
  });
});

describe('stores of this process', () => {
  const big = (bytes: number) => 'x'.repeat(bytes);

  it('never hold more bytes of streams than they may, and forget the one written to longest ago first', async () => {
    const log = new ProcessStreamLog({}, 100, undefined, 100);
    const entries = new Map<string, string>();
    for (const stream of ['a', 'b', 'a', 'c']) entries.set(stream, await log.append(stream, big(30)));
    expect(await log.after('b', entries.get('b') ?? '')).toBeUndefined();
    expect(await log.after('a', entries.get('a') ?? '')).toEqual([]);
    expect(await log.after('c', entries.get('c') ?? '')).toEqual([]);
  });

  it('keep a stream that is too heavy by itself, alone', async () => {
    const log = new ProcessStreamLog({}, 100, undefined, 100);
    const small = await log.append('small', big(10));
    const large = await log.append('large', big(200));
    expect(await log.after('small', small)).toBeUndefined();
    expect(await log.after('large', large)).toEqual([]);
  });

  it('take no further record once they hold enough bytes, and change those they have', async () => {
    const { now, pass } = handClock();
    const store = new ProcessVersionedStore(100, now, 100);
    await store.create('a', {}, 10_000);
    expect(await store.replace('a', 1, { result: big(200) }, 10_000)).toBe(true);
    await expect(store.create('b', {}, 10_000)).rejects.toBeInstanceOf(SharedStateUnavailable);
    expect(await store.replace('a', 2, { result: 'short' }, 10_000)).toBe(true);
    expect(await store.create('b', { text: big(200) }, 20_000)).toBe(true);
    pass(20_000);
    expect(await store.create('c', {}, 10_000)).toBe(true);
  });

  it('let the oldest values go for bytes as they do for their number', async () => {
    const store = new ProcessOneTimeStore(100, undefined, 100);
    for (const key of ['a', 'b', 'c']) await store.keep(key, { text: big(30) }, 60_000);
    expect(await store.take('a')).toBeUndefined();
    expect(await store.take('b')).toBeDefined();
    expect(await store.take('c')).toBeDefined();
  });

  it('weigh no more for what was taken, replaced or forgotten', async () => {
    const store = new ProcessOneTimeStore(100, undefined, 100);
    for (let at = 0; at < 50; at += 1) {
      await store.keep('same', { text: big(60) }, 60_000);
      await store.keep('taken', { text: big(10) }, 60_000);
      expect(await store.take('taken')).toBeDefined();
    }
    expect(await store.take('same')).toBeDefined();
    const log = new ProcessStreamLog({}, 100, undefined, 100);
    for (let at = 0; at < 50; at += 1) {
      await log.append('gone', big(60));
      await log.forget('gone');
    }
    const kept = await log.append('kept', big(60));
    await log.append('other', big(30));
    expect(await log.after('kept', kept)).toEqual([]);
  });
});
