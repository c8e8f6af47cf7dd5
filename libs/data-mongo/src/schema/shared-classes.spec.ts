import { describe, expect, it } from 'vitest';
import type { ClassSchema, FieldSchema } from '#policy';
import { layOut, readLayout } from '../storage/plain-storage.js';
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
});
