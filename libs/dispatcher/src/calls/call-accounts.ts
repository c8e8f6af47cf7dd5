import { Injectable } from '@nestjs/common';
import { refusals } from '#core';
import type { ToolDefinition, ToolOutcome } from '#tools';
import { ContinuesAsTask, RUN_HANDED_OVER } from '../tasks/task-store.js';
import { CallJournal } from './call-journal.js';
import { DataBudgets } from './data-budgets.js';
import { failedRun, refusalByProtocol } from './failed-run.js';
import type { CallStep, ToolExecution } from './tool-execution.js';

/** Records the outcome of every call, including calls that end in a protocol error instead of an outcome. */
@Injectable()
export class AuditStep implements CallStep {
  constructor(private readonly journal: CallJournal) {}

  async around(execution: ToolExecution, next: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
    const { name: tool, args, context, notes, observed } = execution;
    const started = performance.now();
    const record = (outcome: ToolOutcome) => {
      const milliseconds = performance.now() - started;
      return this.journal.record({ tool, args, context, outcome, milliseconds, notes, observed });
    };
    let outcome: ToolOutcome;
    try {
      outcome = await next();
    } catch (error) {
      if (error instanceof ContinuesAsTask) error.approver = notes.approver;
      const refusal = refusalByProtocol(error);
      if (refusal) {
        notes.error = error;
        // The error itself is the answer.
        record({ ok: false, refusal })?.catch(() => undefined);
      }
      throw error;
    }
    if (context.signal.reason === RUN_HANDED_OVER) return outcome;
    const kept = record(outcome);
    return kept ? this.onceKept(kept, execution, outcome) : outcome;
  }

  /** Withholds a result that has no audit record. A call that a gate refused has no result to withhold. */
  private async onceKept(
    kept: Promise<void>,
    { name, definition, notes }: ToolExecution,
    outcome: ToolOutcome,
  ): Promise<ToolOutcome> {
    try {
      await kept;
      return outcome;
    } catch {
      if (!notes.begun) return outcome;
      return { ok: false, refusal: refusals.auditWithheld(name, mayHaveWritten(definition)) };
    }
  }
}

/** Charges the data use of a call before its answer, whatever the outcome is, so that the next call includes it. */
@Injectable()
export class BudgetStep implements CallStep {
  constructor(private readonly budgets: DataBudgets) {}

  async around(
    { meter, notes, budgeted }: ToolExecution,
    next: () => Promise<ToolOutcome>,
  ): Promise<ToolOutcome> {
    let bytes = 0;
    try {
      const outcome = await next();
      if (outcome.ok) bytes = Buffer.byteLength(outcome.text);
      return outcome;
    } finally {
      notes.use = meter.settle(bytes);
      if (budgeted) await this.budgets.charge(budgeted, notes.use);
    }
  }
}

/** Converts errors of guards, interceptors and the handler into an outcome. */
@Injectable()
export class OutcomeStep implements CallStep {
  async around({ name, notes }: ToolExecution, next: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
    try {
      return await next();
    } catch (thrown) {
      const { refusal, error } = failedRun(thrown, name);
      notes.error = error;
      return { ok: false, refusal };
    }
  }
}

/** Only a tool that declares writes can change data. A tool of a higher tier may write by other means. */
function mayHaveWritten(tool: ToolDefinition | undefined): boolean {
  return tool?.permission !== 'readonly' || (tool.needs?.length ?? 0) > 0;
}
