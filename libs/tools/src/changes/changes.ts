import type { McpRequest } from '#core';
import type { ParseRow, ProposedWrite } from '#data';
import type { ToolCall } from '../tool.js';

/** A write that was added to a change set, as its caller may read it. */
export interface ProposedAnswer {
  readonly proposed: true;
  readonly change_set: string;
  /** Null: the set need not change the row any more. */
  readonly entry: number | null;
  readonly class_name: string;
  /** Null: the row gets its id when the set is applied. */
  readonly object_id: string | null;
  readonly before?: ParseRow;
  readonly after?: ParseRow;
}

/** A set as its owner sees it. */
export interface ShownChangeSet {
  readonly change_set: string;
  readonly kind: string;
  readonly state: string;
  readonly title?: string;
  readonly reason?: string;
  readonly opened_at: string;
  readonly expires_at: string;
  readonly applied_at?: string;
  readonly approver?: string;
  readonly undoes?: readonly string[];
  readonly undone_by?: string;
  readonly rows: RowCounts;
}

/** How many rows a set changes, and how. */
export interface RowCounts {
  readonly created: number;
  readonly changed: number;
  readonly deleted: number;
}

/** One row of a set, as the caller may read it. */
export interface ShownEntry {
  readonly entry: number;
  readonly operation: ProposedWrite['operation'];
  /** Absent where the row is hidden from a sub-agent. */
  readonly class_name?: string;
  readonly object_id?: string | null;
  readonly before?: ParseRow;
  readonly after?: ParseRow;
  /** Id of the set that took it back, and not the others of its set. */
  readonly undone_by?: string;
  /** Why it could not be applied now. */
  readonly conflict?: string;
  /** Why nothing is shown of the row. */
  readonly hidden?: string;
}

export interface AppliedSet {
  readonly change_set: string;
  readonly applied: true;
  readonly rows: RowCounts;
  readonly left_out?: readonly ShownEntry[];
}

/** What an approver decides on: the whole set. */
export interface SetPreview {
  readonly id: string;
  /** Of everything in the set: another one whenever it changes. */
  readonly digest: string;
  /** The classes of its rows. */
  readonly classNames: readonly string[];
  readonly shown: Readonly<Record<string, unknown>>;
  /** What the decision depends on beside it. */
  readonly row: unknown;
}

/** A set as an approver may see it: the values that both its owner and the approver may read. */
export interface ViewedSet {
  readonly digest: string;
  readonly shown: Readonly<Record<string, unknown>>;
  /** False: rows of it are hidden from the approver, who may deny it and not approve it. */
  readonly isReadable: boolean;
}

/** The calling tool and its caller. */
type Call = Pick<ToolCall, 'agent' | 'approval' | 'signal'> & ToolCall;

/** Change sets of the caller. @throws Refused */
export abstract class Changes {
  /** Judges a write as it would be made, and adds it to the caller's open set. */
  abstract propose(write: ProposedWrite, call: Call, idempotencyKey?: unknown): Promise<ProposedAnswer>;
  /** The caller's sets, newest first. */
  abstract list(call: Call, limit: number): Promise<readonly ShownChangeSet[]>;
  abstract show(
    id: string,
    call: Call,
  ): Promise<ShownChangeSet & { readonly entries: readonly ShownEntry[] }>;
  abstract discard(id: string, call: Call): Promise<ShownChangeSet>;
  /** Proposes every write of a set again, for the rows as they are now. */
  abstract refresh(
    id: string,
    call: Call,
  ): Promise<ShownChangeSet & { readonly entries: readonly ShownEntry[] }>;
  /**
   * Takes a set out of the hands of its agent before a person is asked about it. The same call again finds it as it was left.
   * @param tool `submit_changes` or `undo_changes`
   */
  abstract prepare(tool: string, args: unknown, call: Call): Promise<string>;
  /** What a person is asked about. */
  abstract preview(id: string, call: Call): Promise<SetPreview>;
  /**
   * The set as an approver may see it. The right to decide is asked elsewhere.
   * @returns null for a set that waits for nobody any more
   */
  abstract showTo(id: string, approver: McpRequest): Promise<ViewedSet | null>;
  /** A person said no. */
  abstract deny(id: string, call: Call): Promise<void>;
  abstract apply(call: Call): Promise<AppliedSet>;
}
