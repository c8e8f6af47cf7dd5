import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  Agent,
  type ClientAnswerTo,
  type EarlierApprovals,
  type AskOptions,
  McpRequest,
  type RequestOptions,
  type RequestTransport,
  type ClientRequests,
  type ClientQuestion,
  compileAgentDefinition,
  type FormAnswer,
  MASTER,
  ApprovedCallChanged,
  ClientUnreachable,
  type UnreachableReason,
} from '#core';
import { type ApprovalRecord, ArgumentDigest } from '#audit';
import {
  type ApprovalCase,
  type ApprovalStore,
  processState,
  type SharedState,
  SharedStateUnavailable,
} from '#state';
import {
  APPROVAL_LAPSED,
  type ApprovalDecision,
  type ApprovalRequest,
  Approver,
  ProtocolError,
} from '#dispatcher';
import { ApproversInTurn, ClientApprover, StoredApprover } from './approvers.js';
import { RecordedApprover } from './chosen-approver.js';

const DIGEST = new ArgumentDigest('a key');

const agent = new Agent({
  definition: compileAgentDefinition('writer', { permissions: 'write', tenantId: 'acme' }),
  identity: MASTER,
  principal: 'key:1',
});
const tool = {
  name: 'update_object',
  description: 'd',
  category: 'mutation',
  permission: 'write' as const,
  timeout: 30,
  inputSchema: { type: 'object' },
  clientSafe: true,
};

/** A client in the same process that answers with what a test gives it. */
class ClientInProcess implements ClientRequests {
  readonly asked: { key: string; question: ClientQuestion; options: AskOptions | undefined }[] = [];
  constructor(
    private readonly answer: FormAnswer | Error,
    private readonly capable = true,
  ) {}

  canAnswer(): boolean {
    return this.capable;
  }

  ask<Q extends ClientQuestion>(key: string, question: Q, options?: AskOptions): Promise<ClientAnswerTo<Q>> {
    this.asked.push({ key, question, options });
    return this.answer instanceof Error
      ? Promise.reject(this.answer)
      : Promise.resolve(this.answer as ClientAnswerTo<Q>);
  }

  within(): ClientRequests {
    return this;
  }
}

function createRequest(
  more: Partial<RequestTransport> & RequestOptions = {},
  states: readonly string[] = ['row 1'],
  title = 'old\u2028title\u001b[2J\u{e0158}\ufe00',
): ApprovalRequest {
  let shown = 0;
  return {
    tool,
    args: { class_name: 'Post', object_id: 'p1', fields: { title: 'x' } },
    context: new McpRequest(
      agent,
      { signal: new AbortController().signal, correlationId: 'session-1', ...more },
      more,
    ),
    effectivePermission: 'write',
    policyVersion: 'p1',
    isCurrent: () => true,
    preview: () => {
      const holdsFor = states[Math.min(shown++, states.length - 1)] ?? '';
      return Promise.resolve({ shown: { tool: 'update_object', change: { before: { title } } }, holdsFor });
    },
  };
}

const yes: FormAnswer = { action: 'accept', content: { approve: true } };

describe('the approver at the client', () => {
  const review = (clientRequests: ClientRequests | undefined, states?: readonly string[]) =>
    new ClientApprover(300, processState().bus).review(
      createRequest(clientRequests && { clientRequests }, states),
    );

  it('is asked with the tool, the tier and what would change, for a decision that is used once', async () => {
    const client = new ClientInProcess(yes);
    expect(await review(client)).toEqual({ outcome: 'approve', by: { principal: 'key:1', via: 'client' } });
    expect(client.asked).toHaveLength(1);
    expect(client.asked[0]).toMatchObject({
      key: 'approve',
      options: { once: { holdsFor: 'row 1' } },
      question: {
        kind: 'form',
        schema: {
          type: 'object',
          properties: { approve: { type: 'boolean' } },
          required: ['approve'],
        },
        meta: { 'parse.tool': 'update_object', 'parse.permission': 'write' },
      },
    });
  });

  it('reads stored text on one line of the message, whatever it holds', async () => {
    const client = new ClientInProcess(yes);
    await review(client);
    const { question } = client.asked[0] ?? {};
    const message = question?.kind === 'form' ? question.message : '';
    expect(message).toMatch(/^Approve the write operation 'update_object'\? Review the change/);
    for (const hidden of ['\u2028', '\u001b', '\ufe00', '\u{e0158}']) expect(message).not.toContain(hidden);
  });

  it('gets a message that counts the characters of a long change it leaves out', async () => {
    const client = new ClientInProcess(yes);
    const request = createRequest({ clientRequests: client }, ['row 1'], 'x'.repeat(5_000));
    await new ClientApprover(300, processState().bus).review(request);
    const { question } = client.asked[0] ?? {};
    const message = question?.kind === 'form' ? question.message : '';
    const [, hidden] =
      /x…\n\n(\d+) more characters are not in this message: decline unless/.exec(message) ?? [];
    expect(5_000 - (message.match(/x{2,}/)?.[0].length ?? 0)).toBeLessThan(Number(hidden));
  });

  it.each<[FormAnswer, string]>([
    [{ action: 'decline' }, 'operation denied by approver'],
    [{ action: 'cancel' }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approve: false } }, 'operation denied by approver'],
    [{ action: 'accept', content: {} }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approve: 'yes' } }, 'operation cancelled by approver'],
  ])('that answers %j says no', async (answer, reason) => {
    expect(await review(new ClientInProcess(answer))).toMatchObject({ outcome: 'deny', reason });
  });

  it.each<[UnreachableReason, string]>([
    ['no-stream', 'approval required but no listening stream is open to request it'],
    ['no-session', 'approval required but no session correlation id is available'],
    ['withdrawn', 'approval is no longer asked for: the change set was discarded or has changed'],
    ['not-delivered', 'approval required but the elicitation request could not be delivered'],
    ['timed-out', 'approval request timed out after 300s'],
    ['aborted', 'approval request aborted (session terminated or stream closed)'],
  ])('that cannot be reached (%s) is a no', async (unreachable, reason) => {
    const decision = await review(new ClientInProcess(new ClientUnreachable(unreachable)));
    expect(decision).toEqual({ outcome: 'unavailable', reason });
  });

  it('that never said it can be asked is not asked', async () => {
    const client = new ClientInProcess(yes, false);
    const reason = 'approval required but the client did not advertise the elicitation capability';
    expect(await review(client)).toEqual({ outcome: 'unavailable', reason });
    expect(await review(undefined)).toEqual({ outcome: 'unavailable', reason });
    expect(client.asked).toEqual([]);
  });

  it('approved something else when the row has changed since', async () => {
    expect(await review(new ClientInProcess(yes), ['row 1', 'row 2'])).toMatchObject({ outcome: 'deny' });
    expect(await review(new ClientInProcess(new ApprovedCallChanged()))).toMatchObject({ outcome: 'deny' });
  });

  it('is unavailable when it is unknown whether the decision was used, and lets other errors pass', async () => {
    const unavailable = await review(new ClientInProcess(new SharedStateUnavailable()));
    expect(unavailable).toMatchObject({ outcome: 'unavailable' });
    await expect(review(new ClientInProcess(new ProtocolError(-32021, 'x')))).rejects.toBeInstanceOf(
      ProtocolError,
    );
  });
});

describe('the approver over the approval routes', () => {
  function createStoredApprover(expiry = 60, state = processState(), kept = state.approvals) {
    const announced: ApprovalCase[] = [];
    const deciding = new Set(['chief']);
    const dependencies = {
      store: kept,
      bus: state.bus,
      announce: (one: ApprovalCase) => announced.push(one),
      mayDecide: (name: string) => deciding.has(name),
    };
    return {
      state,
      announced,
      deciding,
      approver: new StoredApprover({ ...dependencies, digest: DIGEST }, { expiry, timeout: 10 }),
    };
  }
  const decide = (state: SharedState, id: string, approved: boolean) =>
    state.approvals.decide(id, { approved, by: 'key:2', agent: 'chief', at: 1 });
  /** What is decided here is announced to nobody: the next look finds it. */
  const lookAgain = () => vi.advanceTimersByTimeAsync(5_000);
  const stopIntervals = () => vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  afterEach(() => void vi.useRealTimers());

  it('lets a call wait and wakes it, also when the word of the decision is lost', async () => {
    stopIntervals();
    const { state, announced, approver } = createStoredApprover();
    const waiting = approver.review(createRequest());
    await expect.poll(() => announced.length).toBe(1);
    expect(announced[0]).toMatchObject({
      requester: { principal: 'key:1', agent: 'writer', tenant: 'acme' },
      permission: 'write',
      correlationId: 'session-1',
    });
    await decide(state, announced[0]?.id ?? '', true);
    await lookAgain();
    expect(await waiting).toEqual({
      outcome: 'approve',
      by: { principal: 'key:2', via: 'desk' },
      caseId: announced[0]?.id,
    });
  });

  it('keeps nothing of the rows of a change set, which each approver reads again', async () => {
    const { announced, approver } = createStoredApprover();
    const request = createRequest({ signal: AbortSignal.abort() });
    const preview = async () => ({ ...(await request.preview()), changeSet: 'set-1' });
    await approver.review({ ...request, preview });
    expect(announced).toMatchObject([{ changeSet: 'set-1' }]);
    expect(JSON.stringify(announced)).not.toContain('title');
  });

  it('ends the wait at once when the call is gone, and keeps the case', async () => {
    const { state, announced, approver } = createStoredApprover();
    const gone = new AbortController();
    const waiting = approver.review(createRequest({ signal: gone.signal }));
    await expect.poll(() => announced.length).toBe(1);
    gone.abort('client_disconnect');
    expect(await waiting).toMatchObject({
      outcome: 'unavailable',
      reason: expect.stringContaining('aborted'),
      caseId: announced[0]?.id,
    });
    await decide(state, announced[0]?.id ?? '', true);
    expect(await approver.review(createRequest())).toMatchObject({ outcome: 'approve' });
    expect(announced).toHaveLength(1);
  });

  it('gives an approval to one call and never to one that would change something else', async () => {
    stopIntervals();
    const { state, announced, approver } = createStoredApprover();
    const first = approver.review(createRequest({}, ['row 1', 'row 2']));
    await expect.poll(() => announced.length).toBe(1);
    await decide(state, announced[0]?.id ?? '', true);
    await lookAgain();
    expect(await first).toMatchObject({ outcome: 'deny', reason: expect.stringContaining('has changed') });
    void approver.review(createRequest());
    await expect.poll(() => announced.length).toBe(2);
  });

  it('gives no approval of who may decide no more, and asks again', async () => {
    const { state, announced, deciding, approver } = createStoredApprover();
    const gone = { signal: AbortSignal.abort() };
    await approver.review(createRequest(gone));
    await decide(state, announced[0]?.id ?? '', true);
    deciding.clear();
    expect(await approver.review(createRequest())).toEqual({
      outcome: 'deny',
      reason: expect.stringContaining('who gave it may not decide any more'),
      caseId: announced[0]?.id,
    });
    deciding.add('chief');
    await approver.review(createRequest(gone));
    expect(announced).toHaveLength(2);
  });

  it('gives none that continues a call once its approver may decide no more', async () => {
    const { state, announced, deciding, approver } = createStoredApprover();
    const kept = new Map<string, string>();
    const granted: EarlierApprovals = {
      keep: (key, _, by) => void kept.set(key, by),
      recall: (key) => Promise.resolve(kept.get(key)),
    };
    const client = Object.assign(new ClientInProcess(yes), { granted });
    await approver.review(createRequest({ signal: AbortSignal.abort() }));
    await decide(state, announced[0]?.id ?? '', true);
    const review = () => approver.review(createRequest({ clientRequests: client }));
    expect([await review(), await review()]).toMatchObject([
      { outcome: 'approve' },
      { outcome: 'approve', again: true },
    ]);
    deciding.clear();
    expect(await review()).toMatchObject({ outcome: 'deny', caseId: announced[0]?.id });
  });

  it('says no when nobody decided in time', async () => {
    const { announced, approver } = createStoredApprover(0.05);
    expect(await approver.review(createRequest())).toEqual({
      outcome: 'unavailable',
      reason: 'approval request timed out after 0.05s',
      caseId: announced[0]?.id,
    });
  });

  it('says no while the shared state cannot be reached', async () => {
    const state = processState();
    const away = Object.create(state.approvals) as ApprovalStore;
    away.open = () => Promise.reject(new SharedStateUnavailable());
    const { approver } = createStoredApprover(60, state, away);
    expect(await approver.review(createRequest())).toMatchObject({ outcome: 'unavailable' });
  });
});

describe('approvers in turn', () => {
  class Says extends Approver {
    asked = 0;
    constructor(private readonly decision: ApprovalDecision | Error) {
      super();
    }
    review(): Promise<ApprovalDecision> {
      this.asked++;
      return this.decision instanceof Error ? Promise.reject(this.decision) : Promise.resolve(this.decision);
    }
  }
  const no = { outcome: 'deny', reason: 'no' } as const;
  const ok = { outcome: 'approve' } as const;

  it('all have to say yes, and nobody is asked after a no', async () => {
    const [first, second] = [new Says(no), new Says(ok)];
    expect(await new ApproversInTurn([first, second]).review(createRequest())).toEqual(no);
    expect(second.asked).toBe(0);
    expect(await new ApproversInTurn([new Says(ok), new Says(no)]).review(createRequest())).toEqual(no);
    expect(await new ApproversInTurn([new Says(ok), new Says(ok)]).review(createRequest())).toEqual(ok);
  });

  it('are published as one event each, and recorded unless the approval routes did', async () => {
    const events: [string, unknown][] = [];
    const kept: ApprovalRecord[] = [];
    const review = (decision: ApprovalDecision | Error) =>
      new RecordedApprover(new Says(decision), 300, {
        digest: DIGEST,
        events: { emit: (name, payload) => events.push([String(name), payload]) > 0 },
        audit: { recordApproval: (entry) => void kept.push(entry) },
        log: { error: () => undefined },
      }).review(createRequest());
    await review(no);
    await review({ ...ok, by: { principal: 'key:2', via: 'desk' } });
    await expect(review(new ProtocolError(-32021, 'missing'))).rejects.toThrow('missing');
    expect(events.map(([, payload]) => payload)).toMatchObject([
      {
        tool: 'update_object',
        effective_permission: 'write',
        correlation_id: 'session-1',
        timeout: 300,
        outcome: 'deny',
        reason: 'no',
      },
      { outcome: 'approve' },
      { outcome: 'unavailable', reason: 'missing' },
    ]);
    expect(new Set(events.map(([name]) => name))).toEqual(new Set(['parse.agent.approval']));
    expect(kept.map(({ outcome }) => outcome)).toEqual(['deny', 'unavailable']);
    expect(kept[0]).toMatchObject({ principal: 'key:1', tenant_id: 'acme', correlation_id: 'session-1' });
  });

  it('refuse a caller of whom fifty calls wait already, also where all wait for one decision', async () => {
    const { approvals: store, bus } = processState();
    const stored = new StoredApprover(
      { store, bus, announce: () => undefined, digest: DIGEST, mayDecide: () => true },
      { expiry: 60 },
    );
    const approver = new RecordedApprover(stored, 300, {
      digest: DIGEST,
      events: { emit: () => true },
      audit: { recordApproval: () => undefined },
      log: { error: () => undefined },
    });
    const leaving = new AbortController();
    const review = () => approver.review(createRequest({ signal: leaving.signal }));
    const waiting = Array.from({ length: 50 }, review);
    const tooMany = {
      outcome: 'unavailable',
      reason: 'approval required but too many requests of this caller are pending',
    };
    expect(await review()).toEqual(tooMany);
    leaving.abort();
    const ended = await Promise.all([...waiting, review()]);
    expect(
      ended.filter((decision) => 'reason' in decision && decision.reason !== tooMany.reason),
    ).toHaveLength(50);
    expect(await review()).not.toEqual(tooMany);
  });

  it('are recorded as what counts, where policy or agent have changed since', async () => {
    const kept: ApprovalRecord[] = [];
    const by = { principal: 'key:1', via: 'client' } as const;
    const decision = await new RecordedApprover(new Says({ ...ok, by, caseId: 'c1' }), 300, {
      digest: DIGEST,
      events: { emit: () => true },
      audit: { recordApproval: (entry) => void kept.push(entry) },
      log: { error: () => undefined },
    }).review({ ...createRequest(), isCurrent: () => false });
    expect(decision).toEqual({ outcome: 'deny', reason: APPROVAL_LAPSED, caseId: 'c1' });
    expect(kept).toMatchObject([{ outcome: 'deny', reason: APPROVAL_LAPSED, approval_id: 'c1' }]);
  });

  it('decide the same when a listener fails', async () => {
    const fails = () => {
      throw new Error('full');
    };
    const approver = new RecordedApprover(new Says(ok), 300, {
      digest: DIGEST,
      events: { emit: fails },
      audit: { recordApproval: fails },
      log: { error: () => undefined },
    });
    expect(await approver.review(createRequest())).toEqual(ok);
  });
});
