// One suite for every runner: rules as plain functions over what they are given.
import 'reflect-metadata';
import { Tool } from '@parley/server';
import { createTestingApplication, policyMatrix, refused } from '../../dist/libs/testing/src/index.js';

class BookTools {
  async count(_, call) {
    return { books: await call.records.count('Book') };
  }
}
const { prototype } = BookTools;
Tool({ name: 'count_books', description: 'How many there are.' })(
  prototype,
  'count',
  Object.getOwnPropertyDescriptor(prototype, 'count'),
);

const objects = {
  Book: [
    { title: 'One', shop: 'north' },
    { title: 'Two', shop: 'south' },
  ],
  Till: [{ cash: 1 }],
};

export const openShop = () =>
  createTestingApplication({
    seed: { objects },
    policy: { classes: { Book: { tenantScope: { field: 'shop' } }, Till: { hidden: true } } },
    agents: { clerk: { tenantId: 'north' } },
    tools: [BookTools],
  });

export const RULES = {
  'counts the books of its own shop': async (shop, equal) => {
    equal((await shop.as('clerk').call('count_books')).data, { books: 1 });
  },
  'never sees the till': (shop) =>
    policyMatrix(shop, {
      agents: ['clerk'],
      rows: [
        { call: ['query_class', { class_name: 'Till' }], clerk: refused('hidden_class', 'class') },
        { call: ['query_class', { class_name: 'Book' }], clerk: 'allowed' },
      ],
    }),
};

/** Does not hold: the till is withheld by another gate. */
export const WRONG = (shop) =>
  shop.as('clerk').expectRefused('hidden_class', 'tenant', 'query_class', { class_name: 'Till' });
