import { describe, expect, it } from 'vitest';
import type { ClassSchema, FieldSchema } from '#policy';
import { layOut, readLayout } from '../storage/plain-storage.js';
import { type StoredKind, withKind } from '../storage/plain-scalars.js';
import { SharedClasses } from './shared-classes.js';

const layout = (hidden: readonly string[] = []) => ({
  collection: 'invoices',
  id: 'objectId' as const,
  columns: new Map([['number', 'no']]),
  timestamps: null,
  hidden,
  changes: new Set(['create'] as const),
  watchable: true,
});
const schema = (fields: readonly [string, FieldSchema][], hidden?: readonly string[]): ClassSchema =>
  layOut(
    {
      className: 'Invoice',
      fields: new Map(fields),
      indexes: [],
      classLevelPermissions: null,
      storage: 'plain',
      database: 'app',
    },
    layout(hidden),
  );

const text = (kind: StoredKind): FieldSchema => withKind({ type: 'String' }, kind);
const document = (kind: StoredKind): FieldSchema => ({
  type: 'Object',
  members: new Map([['team', text(kind)]]),
});
const list = (kind: StoredKind): FieldSchema => ({ type: 'Array', entries: text(kind) });

describe('Classes of the databases of tenants', () => {
  it('are one object where they are equal in everything', () => {
    const classes = new SharedClasses();
    const first = classes.share(schema([['number', { type: 'String' }]]));
    const again = classes.share(schema([['number', { type: 'String' }]]));
    expect(again).toBe(first);
    expect(readLayout(again)?.collection).toBe('invoices');
  });

  it.each<[string, ClassSchema]>([
    ['a column', schema([['other', { type: 'String' }]])],
    ['a type', schema([['number', { type: 'Number' }]])],
    ['how it is stored', schema([['number', { type: 'String' }]], ['a.b'])],
  ])('are two where %s differs', (_, other) => {
    const classes = new SharedClasses();
    const first = classes.share(schema([['number', { type: 'String' }]]));
    expect(classes.share(other)).toBe(other);
    expect(other).not.toBe(first);
  });

  it.each<[string, (kind: StoredKind) => FieldSchema]>([
    ['a column', text],
    ['a member', document],
    ['an entry', list],
  ])('are two where callers see one type of %s and documents store two', (_, field) => {
    const classes = new SharedClasses();
    const share = (kind: StoredKind) => classes.share(schema([['number', field(kind)]]));
    const ids = share('objectId');
    expect(share('string')).not.toBe(ids);
    expect(share('objectId')).toBe(ids);
  });
});
