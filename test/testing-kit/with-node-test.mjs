import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openShop, RULES, WRONG } from './suite.mjs';

void describe('under node:test', () => {
  let shop;
  before(async () => {
    shop = await openShop();
  });
  after(() => shop.close());
  for (const [rule, holds] of Object.entries(RULES)) void test(rule, () => holds(shop, assert.deepEqual));
  void test('a rule that does not hold', () => WRONG(shop));
});
