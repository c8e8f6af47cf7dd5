import { afterAll, beforeAll, expect, it } from 'vitest';
import { ApprovalService } from '#approvals';
import { ArgumentDigest, type AuditSink } from '#audit';
import { Agent, compileAgentDefinition, MASTER } from '#core';
import type { SharedState } from '#state';
import { createDraft, openUnconfirmedState, type UnconfirmedState } from '#state/contracts';
import { OperatorNotes } from '../operator-gate.js';
import { ApprovalsController } from './approvals.controller.js';

const chief = new Agent({
  definition: compileAgentDefinition('chief', { permissions: 'admin', tenantId: 'acme' }),
  identity: MASTER,
  principal: 'key:2',
});
const { signal } = new AbortController();
const operator = { agent: chief, degraded: false, confirm: () => Promise.resolve() };
const { className: _class, objectId: _row, ...TOOL_CASE } = createDraft();

let shared: UnconfirmedState;
let state: SharedState;
let strict: SharedState;
beforeAll(async () => {
  shared = await openUnconfirmedState();
  ({ state, strict } = shared);
});
afterAll(() => shared.close());

it('A decision whose answer is lost leaves a record of its operator, which says that it may count', async () => {
  const records: Parameters<AuditSink['recordEvent']>[0][] = [];
  const serve = (shared: SharedState) =>
    new ApprovalsController(
      new ApprovalService(
        undefined as never,
        undefined as never,
        shared,
        { recordApproval: () => undefined },
        new ArgumentDigest('a key'),
        { approvers: ['chief'] },
        undefined as never,
        undefined as never,
      ),
      new OperatorNotes({ recordEvent: (event) => void records.push(event) }),
    );
  const { opened } = await state.approvals.open(TOOL_CASE, 60_000);
  const { digest } = await serve(state).show(opened.id, operator, signal);
  const body = { decision: 'approve', digest } as const;
  await expect(serve(strict).decide(opened.id, operator, body, signal)).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining('send the same decision again') as string,
    headers: { 'Retry-After': '5' },
  });
  const action = { type: 'operator_action', action: 'console.approve', target: opened.id };
  expect(records).toMatchObject([{ ...action, unconfirmed: true }]);
  await serve(state).decide(opened.id, operator, body, signal);
  expect(records).toMatchObject([{ unconfirmed: true }, action]);
  expect(records[1]).not.toHaveProperty('unconfirmed');
});
