import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Debouncer } from './watcher.js';

describe('a debouncer', () => {
  const fired: string[] = [];
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    fired.length = 0;
  });
  afterEach(() => vi.useRealTimers());
  const debouncer = (interval = 250) => new Debouncer<string>(interval, (thing) => fired.push(thing));

  it('fires once for all touches within the interval, which later ones do not prolong', () => {
    const one = debouncer();
    one.touch('a');
    vi.advanceTimersByTime(200);
    one.touch('a');
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(50);
    expect(fired).toEqual(['a']);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual(['a']);
  });

  it('starts again with the first touch after it fired', () => {
    const one = debouncer();
    one.touch('a');
    vi.advanceTimersByTime(250);
    one.touch('a');
    vi.advanceTimersByTime(249);
    expect(fired).toEqual(['a']);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['a', 'a']);
  });

  it('keeps each thing its own interval, on one timer for all', () => {
    const one = debouncer();
    one.touch('a');
    vi.advanceTimersByTime(100);
    one.touch('b');
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(150);
    expect(fired).toEqual(['a']);
    vi.advanceTimersByTime(100);
    expect(fired).toEqual(['a', 'b']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('does not fire for what was cancelled, and leaves no timer behind', () => {
    const one = debouncer();
    one.touch('a');
    one.touch('b');
    one.cancel('a');
    one.cancel('never touched');
    vi.advanceTimersByTime(250);
    expect(fired).toEqual(['b']);
    one.touch('c');
    one.cancel('c');
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([0, -1])('fires on every touch with an interval of %d', (interval) => {
    const one = debouncer(interval);
    one.touch('a');
    one.touch('a');
    expect(fired).toEqual(['a', 'a']);
  });
});
