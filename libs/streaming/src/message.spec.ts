import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJson } from './message.js';

function depthOf(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

const nested = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 26, withCrossShrink: true },
    fc.oneof(fc.string(), fc.integer(), fc.constant('[{"\\'), fc.constant(null)),
    fc.tuple(tie('value')),
    fc.record({ 'a"[': tie('value') }),
  ),
}));

describe('readJson', () => {
  it('reads what JSON.parse reads, and never anything deeper than 20 levels', () => {
    fc.assert(
      fc.property(nested.value, fc.boolean(), (value, pretty) => {
        const text = JSON.stringify(value, null, pretty ? 2 : 0);
        const expected = depthOf(value) <= 20 ? { ok: true, value } : { ok: false };
        expect(readJson(Buffer.from(text))).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  it('never throws, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(typeof readJson(Buffer.from(bytes)).ok).toBe('boolean');
      }),
    );
  });

  it('takes an empty body as an empty object', () => {
    expect(readJson(Buffer.alloc(0))).toEqual({ ok: true, value: {} });
  });

  it('refuses bytes that are no UTF-8, which could be read in two ways', () => {
    expect(readJson(Buffer.from([0x22, 0xc0, 0xaf, 0x22]))).toEqual({ ok: false });
  });
});
