import type { VersionedStore } from '#cluster';
import { readTaskRecord, type TaskRecord } from './task-record.js';

/** What a change makes of a record; `null` leaves it as it is. */
export type Change = (record: TaskRecord) => TaskRecord | null;

/** The records of tasks, changed one after the other whoever changes them. */
export class TaskRecords {
  constructor(
    private readonly store: VersionedStore,
    private readonly lifetime: number,
  ) {}

  create(taskId: string, record: TaskRecord): Promise<boolean> {
    return this.store.create(taskId, { ...record }, this.lifetime, record.owner.principal);
  }

  async find(taskId: string): Promise<TaskRecord | undefined> {
    const found = await this.store.find(taskId);
    return found && readTaskRecord(found.value);
  }

  remove(taskId: string): Promise<void> {
    return this.store.remove(taskId);
  }

  /** @returns the record after the change; `undefined` when there is none or it was left as it is */
  async change(taskId: string, change: Change): Promise<TaskRecord | undefined> {
    for (;;) {
      const found = await this.store.find(taskId);
      const record = found && readTaskRecord(found.value);
      const changed = record && change(record);
      if (!changed) return undefined;
      const next = { ...changed, lastUpdatedAt: Date.now() };
      if (await this.store.replace(taskId, found.revision, next, this.lifetime)) return next;
    }
  }
}
