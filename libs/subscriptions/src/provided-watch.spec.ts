import { Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { watchProvided } from './provided-watch.js';

const uri = 'note://one';

function watched(debounce: number) {
  const changes = new Subject<void>();
  const told: string[] = [];
  const events = {
    updated: (which: string) => told.push(`updated ${which}`),
    ended: (which: string) => told.push(`ended ${which}`),
  };
  return { changes, told, watch: watchProvided({ uri, changes }, debounce, events) };
}

describe('a resource that its provider watches', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('tells many changes within the interval once, at its end', () => {
    const { changes, told } = watched(250);
    for (let n = 0; n < 100; n += 1) changes.next();
    vi.advanceTimersByTime(249);
    expect(told).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(told).toEqual([`updated ${uri}`]);
    vi.advanceTimersByTime(1_000);
    expect(told).toHaveLength(1);
  });

  it('tells each change without an interval', () => {
    const { changes, told } = watched(0);
    changes.next();
    changes.next();
    expect(told).toHaveLength(2);
  });

  it('tells nothing more once it is closed, a change that waits included', () => {
    const { changes, told, watch } = watched(250);
    changes.next();
    watch.close();
    changes.next();
    vi.advanceTimersByTime(1_000);
    expect(told).toEqual([]);
  });

  it.each([
    ['completes', (changes: Subject<void>) => changes.complete()],
    ['fails', (changes: Subject<void>) => changes.error(new Error('gone'))],
  ])('ends when its provider %s', (_title, end) => {
    const { changes, told } = watched(0);
    end(changes);
    expect(told).toEqual([`ended ${uri}`]);
  });
});
