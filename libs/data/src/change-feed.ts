import type { Observable } from 'rxjs';
import type { Agent, CallContext } from '#core';
import type { ClassSchema, Where } from '#policy';

/** A row came, changed or went. Carries the row after the change in Parse form, when it still exists. */
export interface RowChange {
  readonly className: string;
  readonly objectId: string;
  readonly kind: 'create' | 'update' | 'delete';
  readonly row: Readonly<Record<string, unknown>> | null;
}

/** Changes of one class, from now on. Errors with StoreError when the source is lost for good. */
export abstract class ChangeFeed {
  /** Whether this store reports changes at all, as far as is known at this moment. */
  abstract readonly available: boolean;
  abstract changes(className: string): Observable<RowChange>;
  /**
   * Resolves once nothing that happens to the classes watched at this moment is missed any more.
   * @throws StoreError when the source is lost
   */
  abstract listening(): Promise<void>;
}

/** What is watched for: `count` for how many rows there are, `find` for what is in them. Class permissions tell them apart. */
export type WatchedOperation = 'count' | 'find';

/**
 * The rows of one class that exist for one agent, as its rights are at this moment. It answers whether, never what: no row
 * and no value leaves it.
 */
export interface RowView {
  readonly className: string;
  readonly schema: ClassSchema | undefined;
  /** Equal for two views exactly when the same rules limit the same class. */
  readonly key: string;
  /** Nothing is withheld: every row of the class is the agent's to know. */
  readonly everything: boolean;
  /**
   * The limits an operator declared, for a source that applies the caller's own rights itself. Null when they depend on other
   * classes, and so hold for this moment only.
   */
  readonly declared: Where | null;
  /** Class permissions open the class only to rows that name the caller. */
  readonly ownersOnly: boolean;
  /** Whether one of these rows, at least, exists for the agent. @throws Refused when the database does not answer */
  holdsAny(objectIds: readonly string[]): Promise<boolean>;
  /** How many rows exist for the agent. @throws Refused when the database does not answer */
  size(): Promise<number>;
}

/** Opens views for watching: the agent's rights are resolved again before each notification. */
export abstract class RowViews {
  /** @throws Refused and Unauthorized as reading would be */
  abstract open(context: CallContext, className: string, operation: WatchedOperation): Promise<RowView>;
}

/**
 * `listening`: nothing is missed from here on. `gap`: something may have been missed. `change`: a row came, changed or went;
 * a `RowView` decides whether the agent may know.
 */
export type SourceEvent =
  | { readonly kind: 'listening' }
  | { readonly kind: 'gap' }
  | { readonly kind: 'change'; readonly objectId: string; readonly created: boolean };

/** The source refuses to report changes of this class to this caller. */
export class SourceRefused extends Error {
  override readonly name = 'SourceRefused';
  /** @param cause for the log alone */
  constructor(override readonly cause?: unknown) {
    super('the source of changes refuses this caller');
  }
}

/** Reports changes of one class to one agent. They are hints: a view decides what the agent may know. */
export abstract class ChangeSource {
  /** Whether it can be used at this moment, as far as is known. */
  abstract readonly available: boolean;
  /** Equal for callers whom one watch may serve. Null: this source cannot carry the agent's rights, or its limits. */
  abstract channel(agent: Agent, view: RowView): string | null;
  /**
   * Cold; it survives outages by itself. `listening` comes first, once.
   * @throws SourceRefused through the observable
   */
  abstract news(agent: Agent, view: RowView): Observable<SourceEvent>;
}
