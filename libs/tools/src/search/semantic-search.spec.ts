import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkText, MAX_CHUNKS, estimateTokens, withinBudget } from './semantic-search.js';

const text = fc.string({ unit: 'binary', maxLength: 400 });
const shape = fc
  .tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 59 }))
  .filter(([size, overlap]) => overlap < size)
  .map(([size, overlap]) => ({ size, overlap }));

describe('chunks', () => {
  it('hold the whole text, each overlap repeated, none longer than its size', () => {
    fc.assert(
      fc.property(text, shape, (whole, { size, overlap }) => {
        const { chunks, truncated } = chunkText(whole, { size, overlap }, 1_000);
        expect(truncated).toBe(false);
        const rebuilt = chunks
          .map((chunk, i) => (i === 0 ? [...chunk] : [...chunk].slice(overlap)).join(''))
          .join('');
        expect(rebuilt).toBe(whole);
        for (const chunk of chunks) expect([...chunk].length).toBeLessThanOrEqual(size);
      }),
    );
  });

  it('never cut a character in two', () => {
    fc.assert(
      fc.property(text, shape, (whole, size) => {
        for (const chunk of chunkText(whole, size).chunks) expect(Buffer.from(chunk).toString()).toBe(chunk);
      }),
    );
    expect(chunkText('😀😀', { size: 1, overlap: 0 }).chunks).toEqual(['😀', '😀']);
  });

  it('are 200 of a document at most, and say when that was not all', () => {
    const long = chunkText('x'.repeat(1_000), { size: 1, overlap: 0 });
    expect([long.chunks.length, long.truncated]).toEqual([MAX_CHUNKS, true]);
    expect(chunkText('x'.repeat(200), { size: 1, overlap: 0 })).toMatchObject({ truncated: false });
    expect(chunkText('abc', { size: 1, overlap: 0 }, 2)).toEqual({ chunks: ['a', 'b'], truncated: true });
    expect(chunkText('', { size: 5, overlap: 0 }).chunks).toEqual([]);
  });
});

describe('the token budget', () => {
  it('keeps the best ranked that fit, at least one; zero keeps all', () => {
    fc.assert(
      fc.property(
        fc.array(text.map((content) => ({ content }))),
        fc.integer({ min: 0, max: 200 }),
        (ranked, most) => {
          const kept = withinBudget(ranked, most);
          expect(kept).toEqual(ranked.slice(0, kept.length));
          const spent = kept.reduce((sum, { content }) => sum + estimateTokens(content), 0);
          if (most === 0) expect(kept).toHaveLength(ranked.length);
          else if (kept.length > 1) expect(spent).toBeLessThanOrEqual(most);
          if (ranked.length > 0) expect(kept.length).toBeGreaterThan(0);
        },
      ),
    );
  });
});
