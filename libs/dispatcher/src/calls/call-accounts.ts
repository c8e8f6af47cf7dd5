import { Injectable } from '@nestjs/common';
import { refusals } from '#core';
import type { ToolDefinition, ToolOutcome } from '#tools';
import { ContinuesAsTask, RUN_HANDED_OVER } from '../tasks/task-store.js';
import { CallJournal } from './call-journal.js';
import { DataBudgets } from './data-budgets.js';
import { failedRun, refusalByProtocol } from './failed-run.js';
import type { CallStep, ToolExecution } from './tool-execution.js';

/** Records what came of every call. What the protocol answers in place of an outcome is recorded as well. */
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
        // The answer is the error itself.
        record({ ok: false, refusal })?.catch(() => undefined);
      }
      throw error;
    }
    if (context.signal.reason === RUN_HANDED_OVER) return outcome;
    const kept = record(outcome);
    return kept ? this.onceKept(kept, execution, outcome) : outcome;
  }

  /** A result without a record is withheld. What a gate refused holds none. */
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

/** Charges what a call used before it is answered, whatever comes of it: the next call finds it counted. */
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

/** Turns what guards, interceptors and the handler throw into an outcome. */
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

/** Only a tool that says so changes anything; one of a higher tier may have other ways. */
function mayHaveWritten(tool: ToolDefinition | undefined): boolean {
  return tool?.permission !== 'readonly' || (tool.needs?.length ?? 0) > 0;
}
