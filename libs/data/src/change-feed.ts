import type { Observable } from 'rxjs';
import type { Agent, McpRequest } from '#core';
import type { ClassSchema, Where } from '#policy';

/** A row was created, changed or deleted. Carries the row after the change in Parse form, when it still exists. */
export interface RowChange {
  readonly className: string;
  readonly objectId: string;
  readonly kind: 'create' | 'update' | 'delete';
  readonly row: Readonly<Record<string, unknown>> | null;
}

/** Changes of one class from now on. Errors with StoreError when the source is permanently lost. */
export abstract class ChangeFeed {
  /** Whether this store can report changes; null: it has not said so yet. */
  abstract readonly available: boolean | null;
  /** Asks the store whether it can. Never rejects: one that does not answer leaves what is known. */
  abstract probe(): Promise<void>;
  /** @param tenant whose, where each tenant has a database of its own */
  abstract changes(className: string, tenant?: string | null): Observable<RowChange>;
  /**
   * Resolves once every further change of the classes that are watched now will be reported.
   * @throws StoreError when the source is lost
   */
  abstract waitForListening(): Promise<void>;
}

/** What is watched: `count` for the number of rows, `find` for their content. Class permissions distinguish them. */
export type WatchedOperation = 'count' | 'find';

/**
 * The rows of one class that exist for one agent under its current rights. Its methods return booleans and counts: it returns
 * no row and no value.
 */
export interface RowView {
  readonly className: string;
  readonly schema: ClassSchema | undefined;
  /** Equal for two views exactly when the same rules limit the same class. */
  readonly key: string;
  /** Whether the agent may read every row of the class. */
  readonly everything: boolean;
  /**
   * The limits that an operator declared, for a source that applies the caller's own rights itself. Null when they depend on
   * other classes, and so are valid for this moment only.
   */
  readonly declared: Where | null;
  /** Class permissions permit only rows that name the caller. */
  readonly ownersOnly: boolean;
  /** Whether at least one of these rows exists for the agent. @throws Refused when the database does not answer */
  holdsAny(objectIds: readonly string[]): Promise<boolean>;
  /** How many rows exist for the agent. @throws Refused when the database does not answer */
  size(): Promise<number>;
}

/** Opens views for watching: the agent's rights are resolved again before each notification. */
export abstract class RowViews {
  /** @throws Refused and Unauthorized as a read would */
  abstract open(context: McpRequest, className: string, operation: WatchedOperation): Promise<RowView>;
}

/**
 * `waitForListening`: every further change is reported. `gap`: changes may have been missed. `change`: a row was created, changed or
 * deleted; a `RowView` decides whether the agent is notified.
 */
export type SourceEvent =
  | { readonly kind: 'listening' }
  | { readonly kind: 'gap' }
  | { readonly kind: 'change'; readonly objectId: string; readonly created: boolean };

/** The source refuses to report changes of this class to this caller. */
export class SourceRefused extends Error {
  override readonly name = 'SourceRefused';
  /** @param cause for the log only */
  constructor(override readonly cause?: unknown) {
    super('the source of changes refuses this caller');
  }
}

/** Reports changes of one class to one agent. They are hints: a view decides whether the agent is notified. */
export abstract class ChangeSource {
  /** Whether the source can be used now; null: that is not known yet. */
  abstract readonly available: boolean | null;
  /** Finds out, if it can, where that is not known. Never rejects. Default: it is always known. */
  probe(): Promise<void> {
    return Promise.resolve();
  }
  /** Equal for callers that one watch can serve. Null: this source does not support the agent's rights or its limits. */
  abstract channel(agent: Agent, view: RowView): string | null;
  /**
   * Cold; it survives outages by itself. `waitForListening` is emitted first, once.
   * @throws SourceRefused through the observable
   */
  abstract news(agent: Agent, view: RowView): Observable<SourceEvent>;
}
