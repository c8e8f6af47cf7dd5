import { describe, expect, it } from 'vitest';
import { setOwn } from './own-members.js';

describe('setOwn', () => {
  it.each(['title', '__proto__', 'constructor', 'toString', ''])(
    'sets %j as a member like any other',
    (name) => {
      const target: Record<string, unknown> = {};
      setOwn(target, name, { kept: true });
      expect(Object.keys(target)).toEqual([name]);
      expect(Object.getPrototypeOf(target)).toBe(Object.prototype);
      expect('kept' in target).toBe(false);
      setOwn(target, name, 2);
      expect(Object.entries(target)).toEqual([[name, 2]]);
    },
  );
});
