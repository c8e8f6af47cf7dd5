import { describe, expect, it } from 'vitest';
import { VerifiedTokens } from './verified-tokens.js';

const keys = {};
const claimsOf = (sub: string) => ({ sub, exp: Date.now() / 1000 + 600 });

describe('tokens that were verified a moment ago', () => {
  it('of one subject never push out those of another that has fewer', () => {
    const verified = new VerifiedTokens<object>(60_000, 10);
    for (const at of [1, 2, 3]) verified.keep(`ada ${at}`, keys, claimsOf('ada'));
    for (let at = 0; at < 500; at += 1) verified.keep(`eve ${at}`, keys, claimsOf('eve'));
    for (const at of [1, 2, 3]) expect(verified.find(`ada ${at}`, keys, 0)).toMatchObject({ sub: 'ada' });
    expect(verified.find('eve 499', keys, 0)).toMatchObject({ sub: 'eve' });
    expect(verified.find('eve 0', keys, 0)).toBeUndefined();
  });

  it('are verified again once their time is over, by other keys, and after they expired', () => {
    let now = 0;
    const verified = new VerifiedTokens<object>(1_000, 10, () => now);
    verified.keep('a', keys, claimsOf('ada'));
    verified.keep('b', keys, claimsOf('ada'));
    verified.keep('c', keys, { sub: 'ada', exp: Date.now() / 1000 - 10 });
    expect(verified.find('a', keys, 0)).toBeDefined();
    expect(verified.find('b', {}, 0)).toBeUndefined();
    expect(verified.find('c', keys, 0)).toBeUndefined();
    now = 1_001;
    expect(verified.find('a', keys, 0)).toBeUndefined();
  });
});
