import { describe, expect, it } from 'vitest';
import type { JudgedWrite } from '#data';
import { findProposedWrite, showChange, showToApprover } from './approval.js';
import { smallTool } from '../contracts/kernel-under-test.js';

const judged = (before: object | null, fields: object | null): JudgedWrite => ({
  className: 'Post',
  objectId: 'p1',
  before: before as JudgedWrite['before'],
  fields: fields as JudgedWrite['fields'],
});

describe('a proposed write', () => {
  it('is that of a raw write tool, with either name of its fields', () => {
    const args = { class_name: 'Post', object_id: 'p1', data: { title: 'x' } };
    expect(findProposedWrite(smallTool('update_object'), args)).toEqual({
      operation: 'update',
      className: 'Post',
      objectId: 'p1',
      fields: { title: 'x' },
    });
    expect(findProposedWrite(smallTool('delete_object'), args)?.operation).toBe('delete');
    expect(findProposedWrite(smallTool('create_object'), args)?.operation).toBe('create');
    expect(findProposedWrite(smallTool('call_method'), args)).toBeUndefined();
  });

  it.each<[unknown, unknown, unknown]>([
    ['old', 'new', 'new'],
    [3, { __op: 'Increment', amount: -1 }, 2],
    [undefined, { __op: 'Increment', amount: 4 }, 4],
    ['text', { __op: 'Increment', amount: 4 }, { __op: 'Increment', amount: 4 }],
    [['a'], { __op: 'Add', objects: ['a', 'b'] }, ['a', 'a', 'b']],
    [undefined, { __op: 'Add', objects: ['a'] }, ['a']],
    [[{ x: 1, y: 2 }], { __op: 'AddUnique', objects: [{ y: 2, x: 1 }, 'b'] }, [{ x: 1, y: 2 }, 'b']],
    [['a', 'b', 'a'], { __op: 'Remove', objects: ['a'] }, ['b']],
    ['old', { __op: 'Delete' }, null],
    [{ a: 1 }, { a: 2 }, { a: 2 }],
  ])('turns %j with %j into %j', (held, written, after) => {
    const before = held === undefined ? {} : { field: held };
    expect(showChange('update', judged({ ...before, other: 1 }, { field: written }))).toEqual({
      operation: 'update',
      class_name: 'Post',
      object_id: 'p1',
      before: { field: held ?? null },
      after: { field: after },
    });
  });

  it('shows no value of a row that the caller may not read', () => {
    expect(showChange('update', judged(null, { title: 'x' }))).not.toHaveProperty('before');
    expect(showChange('delete', judged(null, null))).toEqual({
      operation: 'delete',
      class_name: 'Post',
      object_id: 'p1',
    });
  });
});

describe('what leaves for an approver', () => {
  it('names credentials and never shows them, however deep they lie', () => {
    const shown = showToApprover({
      args: { fields: { title: 'x', password: 'p', deep: [{ apiKey: 'k', session_token: 's' }] } },
      token: 't',
    });
    expect(shown).toEqual({
      args: { fields: { title: 'x', deep: [{}] } },
      withheld: ['apiKey', 'password', 'session_token', 'token'],
    });
  });

  it('is bounded, whatever was proposed, and says what it leaves out', () => {
    const long = { tool: 'x', text: 'y'.repeat(10_000), list: Array.from({ length: 100 }, (_, n) => n) };
    const shown = showToApprover(long);
    expect(shown['text']).toBe(`${'y'.repeat(500)}… 9500 more characters`);
    expect(shown['list']).toEqual([...long.list.slice(0, 20), '… 80 more']);
    const wide = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`f${n}`, 'y'.repeat(400)]));
    expect(showToApprover({ tool: 'x', wide })).toEqual({
      tool: 'x',
      preview_error: 'too large to be shown',
    });
  });
});
