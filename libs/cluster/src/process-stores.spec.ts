import { describe, expect, it } from 'vitest';
import { ProcessRateLimiters } from '#agent';
import { approvalDeskContract } from './contracts/approval-desk.contract.js';
import { budgetLedgerContract } from './contracts/budget-ledger.contract.js';
import { messageBusContract } from './contracts/message-bus.contract.js';
import { oneTimeStoreContract } from './contracts/one-time-store.contract.js';
import { handClock } from './contracts/port-under-test.js';
import { rateLimitersContract } from './contracts/rate-limiters.contract.js';
import { streamLogContract, TIGHT_LOG } from './contracts/stream-log.contract.js';
import { subscriptionBookContract } from './contracts/subscription-book.contract.js';
import { versionedStoreContract } from './contracts/versioned-store.contract.js';
import { ProcessApprovalDesk } from './process-approval-desk.js';
import { ProcessBudgetLedger } from './process-budget-ledger.js';
import { ProcessMessageBus } from './process-message-bus.js';
import { ProcessOneTimeStore } from './process-one-time-store.js';
import { ProcessStreamLog } from './process-stream-log.js';
import { ProcessSubscriptionBook } from './process-subscription-book.js';
import { ProcessVersionedStore } from './process-versioned-store.js';
import { SharedStateUnavailable } from './shared-state-unavailable.js';

messageBusContract('ProcessMessageBus', () => {
  const bus = new ProcessMessageBus();
  return Promise.resolve([bus, bus]);
});
approvalDeskContract('ProcessApprovalDesk', () => {
  const { now, pass } = handClock();
  return { port: new ProcessApprovalDesk(1_000, now), pass };
});
oneTimeStoreContract('ProcessOneTimeStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessOneTimeStore(100, now), pass };
});
streamLogContract('ProcessStreamLog', () => {
  const { now, pass } = handClock();
  return { port: new ProcessStreamLog(TIGHT_LOG, 100, now), pass };
});
subscriptionBookContract('ProcessSubscriptionBook', () => {
  const { now, pass } = handClock();
  return { port: new ProcessSubscriptionBook(undefined, 100, now), pass };
});
budgetLedgerContract('ProcessBudgetLedger', () => {
  const { now, pass } = handClock();
  return { port: new ProcessBudgetLedger(100, now), pass };
});
rateLimitersContract('ProcessRateLimiters', () => {
  const { now, pass } = handClock();
  return { port: new ProcessRateLimiters(() => now() / 1000), pass };
});

versionedStoreContract('ProcessVersionedStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessVersionedStore(100, now), pass };
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
