import { type CodeCaller, toRequest } from '#core';
import { compilePolicy, Policies } from '#policy';
import { processState, SuspendedAgents } from '#state';
import { type ToolDefinition, type ToolHandler, type ToolOutcome, ToolRunner } from '#tools';
import type { CallJournal } from '../calls/call-journal.js';
import { DataBudgets, ResultLimit } from '../calls/call-limits.js';
import { CancellationGuard } from '../calls/guards.js';
import {
  AuditInterceptor,
  DeadlineInterceptor,
  OutcomeInterceptor,
  ResultInterceptor,
} from '../calls/interceptors.js';
import { type CallSources, ParleyToolCall } from '../calls/tool-call.js';
import { ToolPipeline } from '../calls/tool-pipeline.js';
import { NO_SEARCH, SmallRecords, smallTool } from './kernel-under-test.js';

/** Runs tools through the steps that record a call, end it and note that it changes data. They reach no database. */
export class RecordedRunner extends ToolRunner {
  /** How many calls of each tool began. */
  readonly begun = new Map<string, number>();
  private readonly tools = new Map<string, { definition: ToolDefinition; handler: ToolHandler }>();
  private readonly pipeline: ToolPipeline;
  private readonly sources: CallSources;

  constructor(journal: CallJournal) {
    super();
    const policies = new Policies(compilePolicy({}).policy);
    const state = processState();
    const emitter = { emit: () => true } as never;
    this.sources = {
      policies,
      records: new SmallRecords({}),
      search: { for: () => NO_SEARCH },
    } as unknown as CallSources;
    this.pipeline = new ToolPipeline([
      new AuditInterceptor(journal, new DataBudgets(state, policies)),
      new OutcomeInterceptor(),
      new CancellationGuard(),
      new DeadlineInterceptor(new SuspendedAgents(state)),
      new ResultInterceptor(emitter, new ResultLimit(1_000)),
    ]);
  }

  add(name: string, handler: ToolHandler, more: Partial<ToolDefinition> = {}): this {
    this.tools.set(name, { definition: smallTool(name, more), handler });
    return this;
  }

  list(): readonly ToolDefinition[] {
    return [...this.tools.values()].map(({ definition }) => definition);
  }

  find(name: string): ToolDefinition | undefined {
    return this.tools.get(name)?.definition;
  }

  run(name: string, args: unknown, caller: CodeCaller): Promise<ToolOutcome> {
    const { sources, tools } = this;
    this.begun.set(name, (this.begun.get(name) ?? 0) + 1);
    return this.pipeline.run(
      new ParleyToolCall(toRequest(caller), { name, args, tool: tools.get(name), sources }),
    );
  }
}
