import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RateLimiters } from '#core';
import type { MakePort } from './port-under-test.js';

export interface RateContractOptions {
  /** Runs of each property. */
  readonly runs?: number;
}

/** The contract of every store of rate limit counts. */
export function rateLimitersContract(
  name: string,
  make: MakePort<RateLimiters>,
  { runs = 100 }: RateContractOptions = {},
): void {
  describe(`${name} keeps the contract of rate limits`, () => {
    it('permits the limit per window, refuses the next with the time to wait, and does not count refusals', async () => {
      const { port, pass } = await make();
      const limiter = port.limiter('a', { limit: 2, window: 1000 });
      expect(await limiter.check('p')).toBeNull();
      await pass(400_000);
      expect(await limiter.check('p')).toBeNull();
      await pass(100_000);
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const verdict = await limiter.check('p');
        expect(verdict).toMatchObject({ limit: 2, window: 1000 });
        expect(verdict?.retryAfter).toBeLessThanOrEqual(500);
        expect(verdict?.retryAfter).toBeGreaterThan(0);
      }
      await pass(500_000);
      expect(await limiter.check('p')).toBeNull();
      expect(await limiter.check('p')).not.toBeNull();
    });

    it('never returns a wait shorter than a tenth of a second', async () => {
      const { port, pass } = await make();
      const limiter = port.limiter('a', { limit: 1, window: 100 });
      await limiter.check('p');
      await pass(99_950);
      // Over a network, the call may be permitted again by now.
      const [verdict, usage] = [await limiter.check('p'), await limiter.usage('p')];
      for (const wait of [verdict?.retryAfter, usage.retryAfter])
        expect(wait ?? 0.1).toBeGreaterThanOrEqual(0.1);
    });

    it('reports the use of a principal without spending, and forgets it on request', async () => {
      const { port, pass } = await make();
      const limiter = port.limiter('a', { limit: 2, window: 1000 });
      expect(await limiter.usage('p')).toEqual({
        limit: 2,
        window: 1000,
        used: 0,
        remaining: 2,
        retryAfter: null,
      });
      await limiter.check('p');
      await pass(400_000);
      await limiter.check('p');
      for (let asked = 0; asked < 3; asked += 1) {
        const usage = await limiter.usage('p');
        expect(usage).toMatchObject({ used: 2, remaining: 0 });
        expect(usage.retryAfter).toBeLessThanOrEqual(600);
        expect(usage.retryAfter).toBeGreaterThan(100);
      }
      await pass(600_000);
      expect(await limiter.usage('p')).toMatchObject({ used: 1, remaining: 1, retryAfter: null });
      await limiter.reset('p');
      expect(await limiter.usage('p')).toMatchObject({ used: 0, remaining: 2 });
    });

    it('counts principals, names and rates apart, and the same ones together', async () => {
      const { port } = await make();
      const rate = { limit: 1, window: 1000 };
      expect(await port.limiter('a', rate).check('p')).toBeNull();
      expect(await port.limiter('a', rate).check('p')).not.toBeNull();
      expect(await port.limiter('a', rate).check('q')).toBeNull();
      expect(await port.limiter('b', rate).check('p')).toBeNull();
      expect(await port.limiter('a', { limit: 2, window: 1000 }).check('p')).toBeNull();
      expect(await port.limiter('a","b', rate).check('p')).toBeNull();
    });

    it('permits no more of many simultaneous calls than the limit', async () => {
      const { port } = await make();
      const limiter = port.limiter('a', { limit: 7, window: 60 });
      const verdicts = await Promise.all(Array.from({ length: 30 }, () => limiter.check('p')));
      expect(verdicts.filter((verdict) => verdict === null)).toHaveLength(7);
    });

    it('never permits more than the limit in any window', async () => {
      const { port, pass } = await make();
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 30 }), async (gaps) => {
          round += 1;
          const limiter = port.limiter(`round ${round}`, { limit: 3, window: 700 });
          // Times are in hundredths of a second.
          const permitted: number[] = [];
          let at = 0;
          for (const gap of gaps) {
            if (gap > 0) await pass(gap * 100_000);
            at += gap;
            if ((await limiter.check('p')) === null) permitted.push(at);
          }
          for (const time of permitted) {
            const window = permitted.filter((other) => other > time - 7 && other <= time);
            expect(window.length).toBeLessThanOrEqual(3);
          }
        }),
        { numRuns: runs },
      );
    });

    it.each([
      { limit: 0, window: 1 },
      { limit: 1, window: 0 },
      { limit: Number.NaN, window: 1 },
    ])('refuses the rate %o, which permits nothing', async (rate) => {
      const { port } = await make();
      expect(() => port.limiter('a', rate)).toThrow(TypeError);
    });
  });
}
