import { describe, expect, it } from 'vitest';
import type { ApprovalView } from '#approvals';
import { secondStep } from './proposed-change.js';

const call = (more: Partial<ApprovalView>): ApprovalView => ({
  id: 'case',
  status: 'pending',
  tool: 'update_object',
  class_name: 'Post',
  permission: 'write',
  requester: { principal: 'key:1', agent: 'writer' },
  own: false,
  requested_at: '',
  expires_at: '',
  ...more,
});
const change = (operation: string) => ({ change: { operation, class_name: 'Post', object_id: 'p1' } });

describe('a second step', () => {
  it('is not asked for before a row is made or changed', () => {
    for (const operation of ['create', 'update']) expect(secondStep(call({}), change(operation))).toBeNull();
    expect(secondStep(call({ tool: 'tag', class_name: undefined } as never), { tool: 'tag' })).toBeNull();
  });

  it('names the row that is deleted, by whichever tool', () => {
    const step = { why: 'This deletes the row p1 of Post.', does: 'Delete p1 of Post' };
    expect(secondStep(call({ tool: 'delete_object', permission: 'admin' }), change('delete'))).toEqual(step);
    expect(secondStep(call({ tool: 'purge' }), change('delete'))).toEqual(step);
    expect(secondStep(call({ tool: 'delete_object' }), { preview_error: 'x' })?.does).toBe(
      'Delete a row of Post',
    );
  });

  it('says how many rows a change set deletes', () => {
    const set = (deleted: number) => ({ rows: { created: 1, changed: 2, deleted }, changes: [] });
    expect(secondStep(call({ tool: 'submit_changes' }), set(0))).toBeNull();
    expect(secondStep(call({ tool: 'submit_changes' }), set(2))).toEqual({
      why: 'This deletes 2 rows.',
      does: 'Apply all of it, and delete 2 rows',
    });
  });

  it('is asked for before a call of the admin tier, and one whose change is not shown', () => {
    expect(secondStep(call({ tool: 'create_class', permission: 'admin' }), {})).toEqual({
      why: 'This is a call of the admin tier: create_class on Post.',
      does: 'Run create_class on Post',
    });
    expect(secondStep(call({}), { preview_error: 'too large to be shown' })).toEqual({
      why: 'The change is not shown: update_object would run on Post unseen.',
      does: 'Run update_object on Post',
    });
  });
});
