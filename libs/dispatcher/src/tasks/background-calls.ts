import {
  cutText,
  type Agent,
  LazyAbort,
  McpRequest,
  type Owner,
  type ProgressUpdate,
  type Refusal,
  refusals,
  type CallApproval,
  type JsonObject,
} from '#core';
import type { Telemetry } from '#telemetry';
import type { ToolRunner } from '#tools';
import type { CallJournal } from '../calls/call-journal.js';
import { InputRound, ModernClientRequests, type UseOnce } from '../client-requests/client-requests.js';
import type { WireRequest } from '../client-requests/question-wire.js';
import type { RequestStateContent } from '../client-requests/request-state.js';
import { toolResult } from '../methods/call-tool.js';
import { readDialect, faultLine, type WarningLog, type RpcError, ProtocolError, RPC } from '../protocol.js';

/** One run of a call that continues as a task. */
export interface BackgroundRun {
  /** The task id, under which a decision is used up. */
  readonly taskId: string;
  readonly agent: Agent;
  readonly tool: string;
  readonly args: JsonObject;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly correlationId?: string;
  /** W3C `traceparent` of the call that began it. */
  readonly began?: string;
  /** The approval that it needed. */
  readonly approval?: CallApproval;
  readonly soFar: RequestStateContent | undefined;
  readonly responses: JsonObject;
  readonly signal: AbortSignal;
  readonly useOnce: UseOnce;
  /** Awaited before a tool runs, within the call too, that may change data. */
  readonly beforeChange: () => Promise<void>;
  /** Awaited before its outcome is recorded: false where another run of the call goes on to its end. */
  readonly claimEnd: () => Promise<boolean>;
  progress(update: ProgressUpdate): void;
}

export type BackgroundOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: RpcError }
  | {
      readonly kind: 'input';
      readonly requests: Readonly<Record<string, WireRequest>>;
      readonly soFar: RequestStateContent;
    };

/** A call that no run completed. */
export interface UnfinishedCall extends Pick<
  BackgroundRun,
  'agent' | 'tool' | 'args' | 'correlationId' | 'approval'
> {
  /** Milliseconds since it was made. */
  readonly milliseconds: number;
  /** Some worker has started it: it may have read and changed data. */
  readonly begun: boolean;
}

/** A task that ends because its agent no longer exists. */
export interface OrphanedTask extends Pick<BackgroundRun, 'taskId' | 'tool' | 'correlationId'> {
  readonly owner: Owner;
}

/** Runs calls outside a request, through the same pipeline, under the agent's current rights. */
export class BackgroundCalls {
  constructor(
    private readonly runner: ToolRunner,
    private readonly log: WarningLog,
    private readonly journal: Pick<CallJournal, 'record' | 'recordTaskEnd'>,
    private readonly telemetry?: Telemetry | undefined,
  ) {}

  /** Records the outcome of a call that was abandoned while it waited, or lost with its worker. */
  recordUnfinished({ milliseconds, begun, ...call }: UnfinishedCall, refusal: Refusal): void {
    const { agent, tool, args, correlationId, approval } = call;
    const context = new McpRequest(agent, Object.assign(new LazyAbort(), { correlationId }));
    const outcome = { ok: false, refusal } as const;
    const notes = { begun, approval };
    const kept = this.journal.record({ tool, args, context, outcome, milliseconds, notes });
    kept?.catch(() => undefined);
  }

  /** Records the end of a task whose agent is no longer configured. */
  recordOrphaned({ taskId, tool, owner, correlationId }: OrphanedTask): void {
    const refusal = refusals.identityUnresolved('the agent of this task is no longer configured');
    this.journal.recordTaskEnd({
      type: 'task_end',
      at: new Date().toISOString(),
      success: false,
      task_id: taskId,
      tool: cutText(tool, 128),
      principal: owner.principal,
      agent_name: owner.agent,
      ...(owner.tenant !== null && { tenant_id: owner.tenant }),
      ...(correlationId !== undefined && { correlation_id: correlationId }),
      error_code: refusal.code,
      gate: refusal.gate,
      ...(refusal.cause !== undefined && { cause: refusal.cause }),
    });
  }

  /** Never rejects. */
  async run(run: BackgroundRun): Promise<BackgroundOutcome> {
    const { taskId, soFar, responses, capabilities, version, useOnce, beforeChange, claimEnd } = run;
    const declared = { era: 'modern', version, clientCapabilities: capabilities } as const;
    const observed = this.telemetry?.background(run);
    // A decision of one round is none of the next, in which the same may be asked again.
    const jti = `${taskId}.${soFar?.round ?? 0}`;
    const state = soFar && { ...soFar, jti, exp: Number.MAX_SAFE_INTEGER };
    const asked = { transport: declared };
    const round = new InputRound({ state, responses, request: asked, useOnce, asksAgain: true });
    try {
      const { signal, correlationId, approval } = run;
      const transport = {
        signal,
        correlationId,
        telemetry: observed,
        progress: (update: ProgressUpdate) => run.progress(update),
      };
      const clientRequests = new ModernClientRequests(round);
      const request = new McpRequest(run.agent, transport, {
        clientRequests,
        background: 'running',
        approval,
        beforeChange,
        claimEnd,
      });
      const running = () => this.runner.run(run.tool, run.args, request);
      const outcome = await (observed ? observed.within(running) : running());
      observed?.ends({ outcome: outcome.ok ? 'ok' : 'tool_error' });
      if (round.isOpen) return { kind: 'input', requests: round.requests(), soFar: round.soFar };
      return { kind: 'result', result: toolResult(outcome, readDialect({ transport: declared }), request) };
    } catch (error) {
      return this.end(error, round);
    } finally {
      // The run waits for its client, or ended with a protocol error.
      observed?.ends(round.isOpen ? { outcome: 'ok' } : { outcome: 'error', code: RPC.internalError });
    }
  }

  private end(error: unknown, round: InputRound): BackgroundOutcome {
    try {
      if (round.isOpen) return { kind: 'input', requests: round.requests(), soFar: round.soFar };
    } catch (missing) {
      return this.fail(missing);
    }
    return this.fail(error);
  }

  private fail(error: unknown): BackgroundOutcome {
    if (error instanceof ProtocolError) {
      const { code, message, data } = error;
      return { kind: 'error', error: { code, message, ...(data !== undefined && { data }) } };
    }
    this.log.warn(faultLine('', error));
    return { kind: 'error', error: { code: RPC.internalError, message: 'Internal error' } };
  }
}
