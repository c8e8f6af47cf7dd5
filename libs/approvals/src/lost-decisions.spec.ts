import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApprovalRecord, ArgumentDigest } from '#audit';
import { Agent, compileAgentDefinition, MASTER } from '#core';
import type { SharedState } from '#state';
import { createDraft, openUnconfirmedState, type UnconfirmedState } from '#state/contracts';
import { ApprovalService } from './approval-service.js';

const chief = new Agent({
  definition: compileAgentDefinition('chief', { permissions: 'admin', tenantId: 'acme' }),
  identity: MASTER,
  principal: 'key:2',
  keyName: 'key of the chief',
});
const deputy = new Agent({
  definition: compileAgentDefinition('deputy', { permissions: 'admin', tenantId: 'acme' }),
  identity: MASTER,
  principal: 'key:3',
});
const { signal } = new AbortController();
const { className: _class, objectId: _row, ...TOOL_CASE } = createDraft();

let shared: UnconfirmedState;
let state: SharedState;
let strict: SharedState;
beforeAll(async () => {
  shared = await openUnconfirmedState();
  ({ state, strict } = shared);
});
afterAll(() => shared.close());

const records: ApprovalRecord[] = [];
const serve = (shared: SharedState) =>
  new ApprovalService(
    undefined as never,
    undefined as never,
    shared,
    { recordApproval: (record) => void records.push(record) },
    new ArgumentDigest('a key'),
    { approvers: ['chief', 'deputy'] },
    undefined as never,
    undefined as never,
  );

async function openCase(subject: string) {
  const { opened } = await state.approvals.open({ ...TOOL_CASE, subject }, 60_000);
  const shown = await serve(state).show(opened.id, chief, signal);
  return { id: opened.id, digest: shown.ok ? shown.value.digest : '' };
}

describe('a decision that the shared state does not confirm', () => {
  it('leaves a record, because it may count', async () => {
    const { id, digest } = await openCase('lost');
    records.length = 0;
    expect(await serve(strict).decide(id, chief, { approved: true, digest }, signal)).toEqual({
      ok: false,
      refusal: 'unconfirmed',
    });
    expect((await state.approvals.find(id))?.status).toBe('approved');
    expect(records).toMatchObject([
      { outcome: 'approve', unconfirmed: true, approver: 'key:2', approval_id: id },
    ]);
  });

  it('is answered as a decision when its approver sends it again', async () => {
    const { id, digest } = await openCase('again');
    const decide = (viewer: Agent, approved: boolean) =>
      serve(state).decide(id, viewer, { approved, digest }, signal);
    await serve(strict).decide(id, chief, { approved: true, digest }, signal);
    records.length = 0;
    expect(await decide(chief, true)).toMatchObject({ ok: true, value: { id, status: 'approved' } });
    expect(await state.approvals.use(id)).toBe(true);
    expect(await decide(chief, true)).toMatchObject({ ok: true, value: { id, status: 'used' } });
    expect(await decide(chief, false)).toEqual({ ok: false, refusal: 'decided_before' });
    expect(await decide(deputy, true)).toEqual({ ok: false, refusal: 'decided_before' });
    expect(records).toEqual([]);
  });
});

describe('a decision that counts', () => {
  it('leaves one record with the key of who decided, and no doubt', async () => {
    const { id, digest } = await openCase('kept');
    records.length = 0;
    const decided = await serve(state).decide(id, chief, { approved: false, digest, reason: 'no' }, signal);
    expect(decided).toMatchObject({ ok: true, value: { status: 'denied' } });
    expect(records).toMatchObject([
      { outcome: 'deny', reason: 'no', approver: 'key:2', approver_key: 'key of the chief' },
    ]);
    expect(records[0]).not.toHaveProperty('unconfirmed');
  });
});
