import { randomBytes } from 'node:crypto';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { Subject } from 'rxjs';
import { Agent, type AgentDefinition, compileAgentDefinition } from '#core';
import { type AuditEvent, type AuditRecord, AuditSink, OperationLog } from '#audit';
import { LargeReads, processState } from '#state';
import { BackgroundCalls, CallJournal, ToolCallbacks } from '#dispatcher';
import { RecordedRunner } from '#dispatcher/contracts';
import { compilePolicy } from '#policy';
import { ProcessTaskQueue } from '../open-task-queue.js';
import { StoredTaskService } from '../stored-task-service.js';
import { AgentReferences, TaskRecords } from '../task-records.js';
import { TaskWorker } from '../task-worker.js';

export const SETTINGS = { lifetime: 60_000, heartbeat: 60_000, maxPerPrincipal: 10 };
const definition = compileAgentDefinition('analyst');
export const agent = new Agent({ definition, principal: 'ada', tenantId: 'acme' });

class Recorded extends AuditSink {
  readonly records: AuditRecord[] = [];
  readonly events: AuditEvent[] = [];
  /** Those that a sink may leave out, because the call did nothing. */
  readonly unbegun: AuditRecord[] = [];
  /** When a record is kept. */
  kept: Promise<void> | undefined;
  record(record: AuditRecord, begun = true): Promise<void> | undefined {
    this.records.push(record);
    if (!begun) this.unbegun.push(record);
    return this.kept;
  }
  override recordEvent(event: AuditEvent): void {
    this.events.push(event);
  }
}

/** The tasks of a few replicas in one process: their state and their audit are shared, and every call passes a pipeline. */
export class TasksUnderTest {
  readonly configured = new Map<string, AgentDefinition>([['analyst', definition]]);
  readonly audit = new Recorded();
  readonly queue = new ProcessTaskQueue();
  readonly state = processState();
  /** Emits after the configuration changed. */
  readonly reloads = new Subject<void>();
  readonly runner: RecordedRunner;
  readonly records: TaskRecords;
  readonly tasks: StoredTaskService;
  /** The digest of the rights that the agent has now. */
  rights = '';
  isCurrent = true;
  /** Milliseconds by which the clock of the replicas was set. */
  shift = 0;
  private readonly agents: AgentReferences;
  private readonly calls: BackgroundCalls;

  constructor(private readonly settings = SETTINGS) {
    const { state } = this;
    this.records = this.openRecords();
    const key = randomBytes(32);
    this.agents = new AgentReferences(
      {
        findDefinition: (name) => this.configured.get(name),
        knows: (known) => known === definition,
        digestRights: () => this.rights,
      },
      { secrets: () => Promise.resolve([key]) },
    );
    const journal = new CallJournal(
      { of: () => compilePolicy({}).policy },
      this.audit,
      null,
      new OperationLog(10),
      new ToolCallbacks(),
      new EventEmitter2(),
    );
    this.runner = new RecordedRunner(journal);
    this.calls = new BackgroundCalls(this.runner, { warn: () => undefined }, journal);
    this.tasks = new StoredTaskService(
      this.records,
      this.queue,
      this.agents,
      this.calls,
      settings,
      new LargeReads(),
      state,
    );
  }

  /** A worker of another replica. @param records as it reaches them */
  openWorker(records = this.records): TaskWorker {
    const { agents, calls, settings, state } = this;
    const current = { changes: this.reloads, isCurrent: () => this.isCurrent };
    return new TaskWorker(records, agents, calls, settings, state, current);
  }

  openRecords(): TaskRecords {
    const { tasks, clock } = this.state;
    return new TaskRecords({ tasks, clock: () => clock() + this.shift }, this.settings);
  }

  begin(tool = 'slow') {
    const args = { secret: 'value' };
    const capabilities = { elicitation: {} };
    return this.tasks.start({ agent, tool, args, version: '2026-07-28', capabilities }, 0);
  }

  reload(): void {
    this.isCurrent = false;
    this.reloads.next();
    this.isCurrent = true;
  }
}
