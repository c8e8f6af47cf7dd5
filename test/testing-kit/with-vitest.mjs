import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openShop, RULES, WRONG } from './suite.mjs';

describe('under vitest', () => {
  let shop;
  beforeAll(async () => {
    shop = await openShop();
  });
  afterAll(() => shop.close());
  for (const [rule, holds] of Object.entries(RULES))
    test(`${rule}`, () => holds(shop, (one, other) => expect(one).toEqual(other)));
  test('a rule that does not hold', async () => {
    expect(await WRONG(shop)).toBeDefined();
  });
});
