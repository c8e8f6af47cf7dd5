import { auditedArgumentNames } from '#audit';
import type { VersionedStore } from '#cluster';
import type { TaskOwner, TaskStatus } from '#dispatcher';
import { readTaskRecord } from './task-record.js';

/** A task as an operator sees it: names, never a value of an argument or a result. */
export interface ListedTask {
  readonly id: string;
  readonly owner: TaskOwner;
  readonly tool: string;
  readonly args_keys: readonly string[];
  readonly status: TaskStatus;
  readonly run: number;
  readonly begun: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly correlation_id?: string;
}

/** For operators: tasks of everybody, those that changed last first. Never to be shown to an agent. */
export class TaskOverview {
  constructor(private readonly store: Pick<VersionedStore, 'latest'>) {}

  /** @throws SharedStateUnavailable */
  async latest(limit: number): Promise<readonly ListedTask[]> {
    const found = await this.store.latest(limit);
    return found.flatMap(({ id, value }) => {
      const record = readTaskRecord(value);
      if (!record) return [];
      const { owner, tool, args, status, run, begun, createdAt, lastUpdatedAt, correlationId } = record;
      return [
        {
          id,
          owner,
          tool,
          args_keys: auditedArgumentNames(args),
          status,
          run,
          begun,
          created_at: new Date(createdAt).toISOString(),
          updated_at: new Date(lastUpdatedAt).toISOString(),
          ...(correlationId !== undefined && { correlation_id: correlationId }),
        },
      ];
    });
  }
}
