import { afterEach, describe, expect, it, vi } from 'vitest';
import { isoNow } from './audit-log.js';

afterEach(() => vi.useRealTimers());

describe('isoNow', () => {
  it('writes what a date writes, also where the clock is set back', () => {
    vi.useFakeTimers();
    const moments = [
      0, 7, 999, 1_000, 1_790_000_000_042, 1_790_000_000_999, 1_790_000_001_000, 1_790_000_000_000,
    ];
    for (const moment of moments) {
      vi.setSystemTime(moment);
      expect(isoNow()).toBe(new Date(moment).toISOString());
    }
  });
});
