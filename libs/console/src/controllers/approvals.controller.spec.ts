import { afterAll, beforeAll, expect, it } from 'vitest';
import { ApprovalService } from '#approvals';
import { ArgumentDigest, type AuditSink } from '#audit';
import { Agent, compileAgentDefinition, MASTER } from '#core';
import { openSharedState, type SharedState } from '#state';
import { createDraft, type RedisServer, startRedis } from '#state/contracts';
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

let redis: RedisServer;
/** It has no replica, so that no decision through `strict` is confirmed, though Redis has run it. */
let state: SharedState;
let strict: SharedState;
beforeAll(async () => {
  redis = await startRedis();
  const options = { url: redis.url, log: { warn: () => undefined } };
  state = await openSharedState(options);
  strict = await openSharedState({ ...options, waitForReplicas: 1 });
});
afterAll(async () => {
  await Promise.all([state.close(), strict.close()]);
  await redis.stop();
});

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
