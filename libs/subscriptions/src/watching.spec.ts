import { Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { renewOn, watchProvided } from './watching.js';

const uri = 'note://one';

function watchChanges(debounce: number) {
  const changes = new Subject<void>();
  const reported: string[] = [];
  const events = {
    onUpdated: (which: string) => reported.push(`updated ${which}`),
    onEnded: (which: string) => reported.push(`ended ${which}`),
  };
  return { changes, reported, watch: watchProvided({ uri, changes }, debounce, events) };
}

describe('a resource that its provider watches', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('reports many changes within the interval once, at its end', () => {
    const { changes, reported } = watchChanges(250);
    for (let n = 0; n < 100; n += 1) changes.next();
    vi.advanceTimersByTime(249);
    expect(reported).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(reported).toEqual([`updated ${uri}`]);
    vi.advanceTimersByTime(1_000);
    expect(reported).toHaveLength(1);
  });

  it('reports each change without an interval', () => {
    const { changes, reported } = watchChanges(0);
    changes.next();
    changes.next();
    expect(reported).toHaveLength(2);
  });

  it('reports nothing more once it is closed, a waiting change included', () => {
    const { changes, reported, watch } = watchChanges(250);
    changes.next();
    watch.close();
    changes.next();
    vi.advanceTimersByTime(1_000);
    expect(reported).toEqual([]);
  });

  it.each([
    ['completes', (changes: Subject<void>) => changes.complete()],
    ['fails', (changes: Subject<void>) => changes.error(new Error('gone'))],
  ])('ends when its provider %s', (_title, end) => {
    const { changes, reported } = watchChanges(0);
    end(changes);
    expect(reported).toEqual([`ended ${uri}`]);
  });
});

describe('a resource whose changes are subscribed to again', () => {
  it('reports only what its provider reports since then', () => {
    const [first, second, renewals] = [new Subject<string>(), new Subject<string>(), new Subject<void>()];
    const reported: unknown[] = [];
    renewOn(first, renewals, () => second).subscribe((change) => reported.push(change));
    first.next('before');
    second.next('nobody listens yet');
    renewals.next();
    first.next('late');
    second.next('after');
    expect(reported).toEqual(['before', 'after']);
    expect(first.observed).toBe(false);
  });

  it.each([
    ['its provider ends', (again: Subject<string>) => again.complete()],
    ['its provider fails', (again: Subject<string>) => again.error(new Error('gone'))],
  ])('ends when %s', (_, end) => {
    const [renewals, again] = [new Subject<void>(), new Subject<string>()];
    const reported: string[] = [];
    const reportEnd = () => reported.push('ended');
    renewOn(new Subject(), renewals, () => again).subscribe({ complete: reportEnd, error: reportEnd });
    renewals.next();
    end(again);
    expect(reported).toEqual(['ended']);
    expect(renewals.observed).toBe(false);
  });

  it('ends when it cannot be subscribed to again', () => {
    const renewals = new Subject<void>();
    let error: unknown;
    renewOn(new Subject(), renewals, () => {
      throw new Error('nobody');
    }).subscribe({ error: (thrown) => (error = thrown) });
    renewals.next();
    expect(error).toEqual(new Error('nobody'));
  });
});
