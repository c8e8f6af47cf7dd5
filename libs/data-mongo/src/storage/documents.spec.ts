import fc from 'fast-check';
import { BSON, BSONRegExp } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { ColumnSample } from '../schema/column-sample.js';
import { readDocument } from './documents.js';
import { PlainStorage } from './plain-storage.js';

const TEXT = 'abcdefgh';

/** A document whose column `text` holds these bytes. */
function withText(bytes: Uint8Array): Uint8Array {
  const document = BSON.serialize({ _id: 1, text: TEXT });
  document.set(bytes, Buffer.from(document).indexOf(TEXT));
  return document;
}

const things = new PlainStorage(
  { className: 'Thing', fields: new Map(), indexes: [], classLevelPermissions: null, storage: 'plain' },
  {
    collection: 'things',
    id: 'number',
    columns: new Map(),
    timestamps: null,
    hidden: [],
    changes: new Set(),
    watchable: true,
  },
);

describe('a document that another program wrote', () => {
  it('is read and sampled with any pattern, also one that JavaScript cannot compile', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.constantFrom('(?i)a', 'a(', '[', '*', '(?<n>a)(?<n>b)', '\\', 'a/b', ''),
          fc.string().filter((text) => !text.includes('\0')),
        ),
        (pattern) => {
          const bytes = BSON.serialize({ _id: 1, deep: [{ pattern: new BSONRegExp(pattern, 'imsux') }] });
          expect(things.toRow(readDocument(bytes))).toEqual({ objectId: '1', deep: [{ pattern }] });
          expect([...ColumnSample.of([bytes]).members.keys()]).toEqual(['_id', 'deep']);
        },
      ),
    );
  });

  it('is read and sampled with any bytes in its texts', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: TEXT.length, maxLength: TEXT.length }).map(withText),
        (bytes) => {
          expect(typeof readDocument(bytes)['text']).toBe('string');
          expect(ColumnSample.of([bytes]).members.get('text')?.type).toBe('String');
        },
      ),
    );
    expect(readDocument(withText(Buffer.from([0xff, 0xfe, ...Buffer.from('cdefgh')])))['text']).toMatch(
      /^\uFFFD+cdefgh$/,
    );
  });

  it('leaves the sample of its collection to the others where it cannot be read at all', () => {
    const broken = BSON.serialize({ _id: 1, flag: true });
    broken[broken.length - 2] = 7;
    expect(() => readDocument(broken)).toThrow(BSON.BSONError);
    const sample = ColumnSample.of([broken, BSON.serialize({ _id: 2, name: 'x' })]);
    expect([...sample.members.keys()]).toEqual(['_id', 'name']);
  });
});
