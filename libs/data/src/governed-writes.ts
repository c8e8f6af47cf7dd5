import type { FieldSchema } from '#policy';
import type { ParseRow } from './record-store.js';

/** A write as a tool would make it. */
export type ProposedWrite =
  | { readonly operation: 'create'; readonly className: unknown; readonly fields: unknown }
  | {
      readonly operation: 'update';
      readonly className: unknown;
      readonly objectId: unknown;
      readonly fields: unknown;
    }
  | { readonly operation: 'delete'; readonly className: unknown; readonly objectId: unknown };

/** What a write would do. */
export interface JudgedWrite {
  readonly className: string;
  readonly objectId: string | null;
  /** What is stored, as far as this agent may read it; null for a new row, or when it may read none of it. */
  readonly before: ParseRow | null;
  /** Values and `{ __op }` by wire name; null when a row is removed. */
  readonly fields: ParseRow | null;
}

/** How a write is made. */
export interface WriteOptions {
  /**
   * Names this write among those of the caller: 1 to 128 letters, digits and `. _ : -`, remembered for a day. The same write
   * under the same key is done once and answered each time; another write under it is refused. Default: every call writes.
   */
  readonly idempotencyKey?: unknown;
}

/**
 * The only door from a tool to changing rows, bound to one call. Every method runs class gate → class permissions → tenant
 * → ids → field rules → store, and gives back what this agent may read of the row. A refused write changes nothing.
 * @throws Refused
 */
export interface GovernedWrites {
  /** @returns the stored row as the agent may read it */
  create(className: unknown, fields: unknown, options?: WriteOptions): Promise<ParseRow>;
  /** `fields` are values or `{ __op }`. @throws Refused `parse_error` when there is no such row for this agent */
  update(className: unknown, objectId: unknown, fields: unknown, options?: WriteOptions): Promise<ParseRow>;
  /** @throws Refused `parse_error` when there is no such row for this agent */
  delete(className: unknown, objectId: unknown, options?: WriteOptions): Promise<void>;
  /** Runs every check of a write and writes nothing. @throws Refused as the write itself would */
  judge(write: ProposedWrite): Promise<JudgedWrite>;
}

/** The only door from a tool to making and removing classes, bound to one call; for agents in master posture. */
export interface GovernedClassWrites {
  /** @returns the fields that were declared, as stored */
  createClass(className: unknown, fields?: unknown): Promise<ReadonlyMap<string, FieldSchema>>;
  /** @throws Refused `invalid_argument` while the class has rows */
  deleteClass(className: unknown): Promise<void>;
}
