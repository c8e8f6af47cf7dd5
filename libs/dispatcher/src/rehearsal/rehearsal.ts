import { type Agent, isForStrayRow, type Refusal } from '#agent';
import type { ToolRunner } from '#tools';
import { GateTrace, type InjectedLimit, type MaskedField, type PassedGate } from './gate-trace.js';
import type { RecordingStore, StoreCommand } from './recording-store.js';
import type { RehearsingApprover } from './rehearsing-approver.js';

/** What would have come of a call, and how it was decided. */
export interface Rehearsal {
  /** By name. */
  readonly agent: string;
  /** By name. */
  readonly tool: string;
  /** No gate refused. */
  readonly allowed: boolean;
  /** A person would be asked before the call runs. */
  readonly asksApproval: boolean;
  /** In the order they were asked. */
  readonly passed: readonly PassedGate[];
  /** Present when a gate refused. */
  readonly refusal?: Refusal;
  /** What limits the rows, and who says so. */
  readonly injected: readonly InjectedLimit[];
  /** Of the classes that the call uses. */
  readonly masked: readonly MaskedField[];
  /** What would have been sent to the database. The first command may have answered differently there. */
  readonly commands: readonly StoreCommand[];
}

/**
 * Runs calls through the pipeline and the governed records that serve them, up to the door of the store and no further.
 * One call at a time.
 */
export class Rehearser {
  /** @param runner made over this very `store` and `approver` */
  constructor(
    private readonly runner: ToolRunner,
    private readonly store: RecordingStore,
    private readonly approver: RehearsingApprover,
  ) {}

  async rehearse(agent: Agent, tool: string, args: unknown): Promise<Rehearsal> {
    const trace = new GateTrace();
    this.store.take();
    this.approver.take();
    const signal = new AbortController().signal;
    const outcome = await this.runner.run(tool, args, { agent, signal, trace, progress: () => undefined });
    const commands = this.store.take();
    const refusal = outcome.ok || isForWantOfData(outcome.refusal, commands) ? undefined : outcome.refusal;
    return {
      agent: agent.shape.name,
      tool,
      allowed: refusal === undefined,
      asksApproval: this.approver.take(),
      passed: trace.passedGates,
      ...(refusal && { refusal }),
      injected: trace.injected,
      masked: trace.maskedFields,
      commands,
    };
  }
}

/** The store was reached, and only its empty answer ended the call: no gate did. */
function isForWantOfData(refusal: Refusal, commands: readonly StoreCommand[]): boolean {
  return commands.length > 0 && (refusal.gate === 'data' || isForStrayRow(refusal));
}
