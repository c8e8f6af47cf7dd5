import { askingCall, type CallContext, readProgress, type ToolTelemetry } from '#agent';
import type { EmbeddingSpend } from '#audit';
import type { CallBudget, GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource } from '#data';
import type { Policies } from '#policy';
import type { ToolCall, ToolDefinition, ToolNeed } from '#tools';
import { ContinuesAsTask } from '../tasks/continues-as-task.js';
import type { CallNotes } from './call-journal.js';
import type { CallMeter } from './call-meter.js';
import { meters } from './meters.js';
import type { RunClock } from './run-clock.js';
import { secondsFor } from './tool-execution.js';

/** Where the doors of a call come from. */
export interface CallSources {
  readonly policies: Pick<Policies, 'of'>;
  readonly records: GovernedRecordsSource;
  readonly search: GovernedSearchSource;
  readonly writes: GovernedWritesSource;
}

interface OpenedRun {
  readonly definition: ToolDefinition | undefined;
  readonly name: string;
  /** As the call came. */
  readonly context: CallContext;
  /** As the run goes on. */
  readonly ownContext: CallContext;
  readonly clock: RunClock;
  readonly notes: CallNotes;
}

/** Opens calls of one run, as often as it wants one: what a handler is given, and nothing else that leads to data. */
export function callsOf(
  { policies, records, search, writes }: CallSources,
  { definition, name, context, ownContext, clock, notes }: OpenedRun,
): () => ToolCall {
  const budget: CallBudget = { tool: name, timeout: secondsFor(definition, context) };
  const asking = askingCall(context.asks, (work) => clock.suspended(work));
  return () =>
    ({
      ...ownContext,
      ...asking,
      continueAsTask: () => {
        if (definition?.task === 'on-demand' && context.background === 'offered') throw new ContinuesAsTask();
      },
      tool: definition,
      records: records.for(ownContext, budget),
      search: search.for(ownContext, budget),
      switches: policies.of(context.agent).switches,
      spend: (embedding: EmbeddingSpend) => (notes.embedding = sumOf(notes.embedding, embedding)),
      ...writingDoors(writes, definition?.needs ?? [], ownContext, budget),
    }) as ToolCall;
}

/** Only what the tool said it needs: one that reads holds nothing that writes. */
function writingDoors(
  writes: GovernedWritesSource,
  needs: readonly ToolNeed[],
  context: CallContext,
  budget: CallBudget,
): object {
  return {
    ...(needs.includes('rows') && { writes: writes.rows(context, budget) }),
    ...(needs.includes('classes') && { classes: writes.classes(context, budget) }),
    ...(needs.includes('methods') && { methods: writes.methods(context, budget) }),
  };
}

interface RunParts {
  readonly signal: AbortSignal;
  readonly observed: ToolTelemetry | undefined;
  readonly meter: CallMeter;
}

/** The context of a run: that of its call, with a signal, measures and questions of its own. */
export function contextOfRun(context: CallContext, { signal, observed, meter }: RunParts): CallContext {
  return {
    agent: context.agent,
    signal,
    ...(context.correlationId !== undefined && { correlationId: context.correlationId }),
    ...measuredBy(observed, context, meter),
    ...(context.asks && { asks: context.asks.within() }),
    progress: (update) => {
      const report = readProgress(update);
      // A report that cannot be told is no reason to lose the result.
      if (report) context.progress(report);
    },
    ...(context.log && { log: (entry) => context.log?.(entry) }),
    ...(context.endStream && { endStream: () => context.endStream?.() }),
  };
}

/** What the run's own doors tell of themselves, and to whom. */
function measuredBy(
  observed: ToolTelemetry | undefined,
  { trace: rehearsed, telemetry }: CallContext,
  own: CallMeter,
): Pick<CallContext, 'trace' | 'meter' | 'telemetry'> {
  const trace = observed?.trace ?? rehearsed;
  const meter = meters(own, observed?.meter);
  return { ...(trace && { trace }), ...(meter && { meter }), ...(telemetry && { telemetry }) };
}

function sumOf(before: EmbeddingSpend | undefined, more: EmbeddingSpend): EmbeddingSpend {
  return { calls: (before?.calls ?? 0) + more.calls, tokens: (before?.tokens ?? 0) + more.tokens };
}
