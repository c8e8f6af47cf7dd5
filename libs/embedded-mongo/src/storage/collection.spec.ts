import { describe, expect, it, vi } from 'vitest';
import type { Document } from '../bson/document.js';
import { Collection } from './catalog.js';
import { createDraft, draftNext } from './change.js';
import { normaliseIndex } from './index-spec.js';

import fc from 'fast-check';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const collectionWith = (...indexes: object[]): Collection => {
  const collection = new Collection({ db: 'd', coll: 'c' });
  for (const index of indexes) collection.addIndex(normaliseIndex(index));
  return collection;
};
const documents = (collection: Collection): Document[] =>
  Array.from(collection.snapshotRecords().range(), ({ document }) => document);
const duplicate = expect.objectContaining({ code: 11000 });

describe('Collection', () => {
  it('refuses a second document of one _id or unique key, in the words drivers parse', () => {
    const collection = collectionWith({ key: { username: 1 }, name: 'username_1', unique: true });
    collection.insert(createDraft({ _id: 1, username: 'x' }));
    expect(() => collection.insert(createDraft({ _id: 2, username: 'x' }))).toThrow(
      'E11000 duplicate key error collection: d.c index: username_1 dup key: { username: "x" }',
    );
    expect(() => collection.insert(createDraft({ _id: 1 }))).toThrow(duplicate);
    expect(collection.count).toBe(1);
  });

  it('lets a sparse unique index pass documents without the field, and only those', () => {
    const collection = collectionWith({ key: { mail: 1 }, name: 'm', unique: true, sparse: true });
    collection.insert(createDraft({ _id: 1 }));
    collection.insert(createDraft({ _id: 2 }));
    collection.insert(createDraft({ _id: 3, mail: null }));
    expect(() => collection.insert(createDraft({ _id: 4, mail: null }))).toThrow(duplicate);
  });

  it('applies a partial unique index only to the documents of its filter', () => {
    const partialFilterExpression = { active: true };
    const collection = collectionWith({ key: { n: 1 }, name: 'n', unique: true, partialFilterExpression });
    collection.insert(createDraft({ _id: 1, n: 1, active: true }));
    collection.insert(createDraft({ _id: 2, n: 1, active: false }));
    expect(() => collection.insert(createDraft({ _id: 3, n: 1, active: true }))).toThrow(duplicate);
  });

  it('takes strings for equal that the index collation calls equal', () => {
    const collation = { locale: 'en', strength: 2 };
    const collection = collectionWith({ key: { name: 1 }, name: 'n', unique: true, collation });
    collection.insert(createDraft({ _id: 1, name: 'Ann' }));
    expect(() => collection.insert(createDraft({ _id: 2, name: 'ANN' }))).toThrow(duplicate);
    collection.insert(createDraft({ _id: 3, name: 'Änn' }));
  });

  it('leaves everything as it was when one index refuses a write', () => {
    const collection = collectionWith(
      { key: { a: 1 }, name: 'a' },
      { key: { u: 1 }, name: 'u', unique: true },
    );
    const first = collection.insert(createDraft({ _id: 1, a: 1, u: 1 }));
    collection.insert(createDraft({ _id: 2, a: 2, u: 2 }));
    expect(() => collection.replace(first, draftNext(first, { _id: 1, a: 9, u: 2 }))).toThrow(duplicate);
    expect(documents(collection)).toEqual([
      { _id: 1, a: 1, u: 1 },
      { _id: 2, a: 2, u: 2 },
    ]);
    expect(collection.indexes.map((index) => index.size)).toEqual([2, 2, 2]);
  });

  it('refuses a unique index that present documents contradict', () => {
    const collection = collectionWith();
    collection.insert(createDraft({ _id: 1, n: 1 }));
    collection.insert(createDraft({ _id: 2, n: 1 }));
    expect(() => collection.addIndex(normaliseIndex({ key: { n: 1 }, name: 'n', unique: true }))).toThrow(
      duplicate,
    );
    expect(collection.indexes).toHaveLength(1);
  });

  it('refuses documents it could not give back: too large, too deep, or with an impossible _id', () => {
    expect(() => createDraft({ blob: 'x'.repeat(17 * 1024 * 1024) })).toThrow(
      expect.objectContaining({ code: 10334 }),
    );
    let deep: Document = {};
    for (let depth = 0; depth < 120; depth += 1) deep = { deep };
    expect(() => createDraft(deep)).toThrow(expect.objectContaining({ code: 15 }));
    expect(() => createDraft({ _id: [1] })).toThrow(expect.objectContaining({ code: 2 }));
    expect(() => createDraft({ _id: { $a: 1 } })).toThrow(expect.objectContaining({ code: 52 }));
  });

  it('never lets a fork and its origin see each other', () => {
    const step = fc.record({ id: fc.nat(20), n: fc.nat(5), drop: fc.boolean(), fork: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.array(step, { maxLength: 60 }), (before, after) => {
        const origin = collectionWith({ key: { n: 1 }, name: 'n' });
        const apply = (
          collection: Collection,
          { id, n, drop }: { id: number; n: number; drop: boolean },
        ): void => {
          const present = collection.byId(id);
          if (!present) collection.insert(createDraft({ _id: id, n }));
          else if (drop) collection.remove(present);
          else collection.replace(present, draftNext(present, { _id: id, n }));
        };
        for (const one of before) apply(origin, one);
        const fork = origin.fork();
        const model = origin.fork();
        for (const one of after) if (one.fork) apply(fork, one);
        expect(documents(origin)).toEqual(documents(model));
        const forked = documents(fork);
        for (const one of after) if (!one.fork) apply(origin, one);
        expect(documents(fork)).toEqual(forked);
        for (const collection of [origin, fork]) {
          expect(collection.indexes.map((index) => index.size)).toEqual([collection.count, collection.count]);
        }
      }),
    );
  });
});
