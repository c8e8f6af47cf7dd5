import { describe, expect, it } from 'vitest';
import { describeSize, groupByClass } from './set-rows.js';

describe('the rows of a change set', () => {
  it('are counted in a line', () => {
    expect(describeSize({ created: 2, changed: 27, deleted: 2 })).toBe(
      '31 rows: 2 created, 27 changed, 2 deleted',
    );
    expect(describeSize({ created: 0, changed: 1, deleted: 0 })).toBe('1 row changed');
    expect(describeSize({ created: 0, changed: 0, deleted: 0 })).toBe('0 rows');
  });

  it('stand together by class, those of hidden classes last', () => {
    const row = (entry: number, name?: string) => ({
      entry,
      operation: 'update' as const,
      ...(name !== undefined && { class_name: name }),
    });
    const groups = groupByClass([row(1), row(2, 'Post'), row(3, 'Author'), row(4, 'Post')]);
    expect(groups.map(([name, rows]) => [name, rows.map(({ entry }) => entry)])).toEqual([
      ['Post', [2, 4]],
      ['Author', [3]],
      [null, [1]],
    ]);
  });
});
