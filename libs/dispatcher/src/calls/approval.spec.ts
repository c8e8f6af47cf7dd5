import { from, lastValueFrom, map } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  Agent,
  type CallApproval,
  McpRequest,
  compileAgentDefinition,
  MASTER,
  type Refusal,
  refusals,
  Refused,
} from '#core';
import { compilePolicy, readEnvironmentGates } from '#policy';
import {
  type CallableMethod,
  type Changes,
  MethodRegistry,
  type ToolHandler,
  type ToolOutcome,
} from '#tools';
import { type ApprovalDecision, type ApprovalRequest, Approver } from './approval.js';
import type { CallJournal } from './call-journal.js';
import type { DataBudgets } from './call-limits.js';
import { ApprovalGuard } from './guards.js';
import { AuditInterceptor } from './interceptors.js';
import { type CallSources, ParleyToolCall } from './tool-call.js';
import { NO_SEARCH, SmallRecords, smallTool } from '../contracts/kernel-under-test.js';

class Asked extends Approver {
  readonly requests: ApprovalRequest[] = [];

  constructor(private readonly decision: ApprovalDecision) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    this.requests.push(request);
    return this.decision;
  }
}

const method = (name: string, permission: CallableMethod['permission']): CallableMethod => ({
  name,
  permission,
  type: 'class',
  description: null,
  supportsDryRun: false,
  parameters: null,
  permittedKeys: null,
  wantsAgent: false,
  handler: () => null,
});

const methods = new MethodRegistry();
methods.register('Post', method('list', 'readonly'));
methods.register('Post', method('archive', 'write'));
methods.register('Post', method('purge', 'admin'));

const definition = compileAgentDefinition('x', { permissions: 'admin' });
const context = new McpRequest(new Agent({ definition, identity: MASTER, principal: 'p' }));

const TOOLS = {
  call_method: smallTool('call_method'),
  query_class: smallTool('query_class'),
  update_object: smallTool('update_object', { permission: 'write' }),
  list_changes: smallTool('list_changes', { permission: 'write', approval: 'never' }),
};

/** Of the calls of each test. */
let { policy } = compilePolicy({});
const sources = {
  policies: { of: () => policy },
  records: new SmallRecords({}),
  search: { for: () => NO_SEARCH },
} as unknown as CallSources;

const LAPSED =
  'approval no longer applies: the policy, or what this agent may do, has changed since it was asked for; call again';

function makeCall(
  name: keyof typeof TOOLS,
  args: unknown,
  handler: ToolHandler = () => null,
  request = context,
) {
  return new ParleyToolCall(request, { name, args, tool: { definition: TOOLS[name], handler }, sources });
}

async function readRefusal(admits: () => unknown): Promise<Refusal | null> {
  try {
    expect(await admits()).toBe(true);
    return null;
  } catch (error) {
    return (error as Refused).refusal;
  }
}

/** The tiers that were sent for approval; with `deny`, also the refusal of the call. */
async function asked(
  tiers: string[],
  call: ParleyToolCall,
  decision: ApprovalDecision = { outcome: 'approve' },
  env: Readonly<Record<string, string>> = OPEN,
) {
  const approver = new Asked(decision);
  policy = compilePolicy({ requireApprovalFor: tiers }).policy;
  const guard = new ApprovalGuard(approver, methods, readEnvironmentGates(env), NO_CHANGES, {
    isCurrent: () => true,
  });
  const refused = await readRefusal(() => guard.canActivate(call));
  return { requests: approver.requests, refused };
}

/** No call of these tests is about a change set. */
const NO_CHANGES = {} as Changes;

const OPEN = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true' };

const callMethod = (name: string, more: object = {}, handler?: ToolHandler) =>
  makeCall('call_method', { class_name: 'Post', method_name: name, ...more }, handler);

describe('the time of a call', () => {
  afterEach(() => vi.useRealTimers());

  it.each([
    ['that a person approves', { outcome: 'approve' }],
    ['that a person denies', { outcome: 'deny', reason: 'no' }],
  ] as [string, ApprovalDecision][])('does not contain the minutes %s', async (_, decision) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    class Slow extends Approver {
      review(): Promise<ApprovalDecision> {
        vi.advanceTimersByTime(300_000);
        return Promise.resolve(decision);
      }
    }
    policy = compilePolicy({ requireApprovalFor: ['write'] }).policy;
    const guard = new ApprovalGuard(new Slow(), methods, readEnvironmentGates(OPEN), NO_CHANGES, {
      isCurrent: () => true,
    });
    const times: number[] = [];
    const journal = { record: ({ milliseconds }: { milliseconds: number }) => void times.push(milliseconds) };
    const recording = new AuditInterceptor(journal as unknown as CallJournal, {} as unknown as DataBudgets);
    const call = callMethod('archive');
    const handle = () =>
      from(readRefusal(() => guard.canActivate(call))).pipe(
        map((refusal): ToolOutcome => {
          vi.advanceTimersByTime(20);
          return refusal ? { ok: false, refusal } : { ok: true, data: 1, text: '1', structured: false };
        }),
      );
    await lastValueFrom(recording.intercept(call, { handle }));
    expect(times).toEqual([20]);
  });
});

describe('approval', () => {
  it.each([
    ['list', []],
    ['archive', ['write']],
    ['purge', ['admin']],
    ['undeclared', []],
  ])('of call_method goes by the tier of %s', async (name, tiers) => {
    const { requests } = await asked(['write', 'admin'], callMethod(name));
    expect(requests.map(({ effectivePermission }) => effectivePermission)).toEqual(tiers);
  });

  it.each([
    ['archive', 'PARSE_AGENT_ALLOW_WRITE_TOOLS'],
    ['purge', 'PARSE_AGENT_ALLOW_SCHEMA_OPS'],
  ])('of %s is asked of nobody while its environment gate is shut', async (name, gate) => {
    for (const more of [{}, { arguments: { dry_run: true } }]) {
      const { requests, refused } = await asked(['write', 'admin'], callMethod(name, more), undefined, {});
      expect(requests).toEqual([]);
      expect(refused).toMatchObject({ code: 'access_denied', message: expect.stringContaining(gate) });
    }
  });

  it.each([true, 1, 'yes'])('of a dry run (%j) is asked of nobody', async (dry_run) => {
    const { requests, refused } = await asked(['write'], callMethod('archive', { arguments: { dry_run } }));
    expect({ requests, refused }).toEqual({ requests: [], refused: null });
  });

  it.each([false, null])('of a call whose dry_run is %j is asked', async (dry_run) => {
    const { requests } = await asked(['write'], callMethod('archive', { arguments: { dry_run } }));
    expect(requests).toHaveLength(1);
  });

  it('of other tools goes by their own tier', async () => {
    expect((await asked(['write'], makeCall('update_object', {}))).requests).toHaveLength(1);
    expect((await asked(['admin'], makeCall('update_object', {}))).requests).toHaveLength(0);
    expect((await asked([], makeCall('update_object', {}))).requests).toHaveLength(0);
  });

  it('of a tool that changes no row is asked of nobody', async () => {
    expect((await asked(['write'], makeCall('list_changes', {}))).requests).toHaveLength(0);
  });

  it('is of no use once the policy or the agent is another one', async () => {
    policy = compilePolicy({ requireApprovalFor: ['write'] }).policy;
    let isCurrent = true;
    const approver = new Asked({ outcome: 'approve' });
    const agents = { isCurrent: () => isCurrent };
    const guard = new ApprovalGuard(approver, methods, readEnvironmentGates(OPEN), NO_CHANGES, agents);
    const admit = () => readRefusal(() => guard.canActivate(makeCall('update_object', {})));
    expect(await admit()).toBe(null);
    isCurrent = false;
    expect(await admit()).toMatchObject({ code: 'approval_denied', message: LAPSED });
  });

  it('of a task counts under the policy for which it was given, and under no other', async () => {
    const run = async (approval: CallApproval | undefined, tiers = ['write']) => {
      const request = context.with({ background: 'running', approval });
      return asked(tiers, makeCall('update_object', {}, undefined, request));
    };
    const { version } = compilePolicy({ requireApprovalFor: ['write'] }).policy;
    expect(await run({ policyVersion: version })).toEqual({ requests: [], refused: null });
    for (const approval of [{ policyVersion: 'other' }, { by: 'somebody' }, undefined])
      expect(await run(approval)).toMatchObject({ requests: [], refused: { message: LAPSED } });
    expect(await run(undefined, [])).toEqual({ requests: [], refused: null });
  });

  it.each(['deny', 'unavailable'] as const)('that ends in %s refuses the call', async (outcome) => {
    const { refused } = await asked(['write'], callMethod('archive'), { outcome, reason: 'not now' });
    expect(refused).toMatchObject({ code: 'approval_denied', message: 'not now' });
  });

  it('shows a dry run of a declared method, whatever the caller asked for', async () => {
    const seen: unknown[] = [];
    const run = callMethod('archive', { arguments: { reason: 'old', dry_run: false } }, (args) => {
      seen.push(args);
      return { would_call: 'archive' };
    });
    const { requests } = await asked(['write'], run);
    expect(seen).toEqual([]);
    expect((await requests[0]?.preview())?.shown).toEqual({ would_call: 'archive' });
    expect(seen).toEqual([
      { class_name: 'Post', method_name: 'archive', arguments: { reason: 'old', dry_run: true } },
    ]);
  });

  it('shows the refusal of a preview, and no internal error', async () => {
    const preview = async (error: Error) => {
      const run = callMethod('archive', {}, () => {
        throw error;
      });
      return (await (await asked(['write'], run)).requests[0]?.preview())?.shown;
    };
    const args = { class_name: 'Post', method_name: 'archive' };
    expect(await preview(new Refused(refusals.objectNotFound('Post', 'p1')))).toEqual({
      tool: 'call_method',
      preview_error: 'Parse error: Object not found: Post#p1',
      args,
    });
    expect(await preview(new Error('secret'))).toEqual({
      tool: 'call_method',
      preview_error: 'no preview could be made',
      args,
    });
  });

  it('shows another call as proposed, without sensitive arguments', async () => {
    const run = makeCall('update_object', {
      class_name: 'Post',
      fields: { title: 'x' },
      session_token: 'r:1',
    });
    const { requests } = await asked(['write'], run);
    expect((await requests[0]?.preview())?.shown).toEqual({
      tool: 'update_object',
      args: { class_name: 'Post', fields: { title: 'x' } },
    });
  });
});
