import type { CallContext } from '#agent';
import type { ClassSchema, Where } from '#policy';

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
  /** Whether one of these rows, at least, exists for the agent. @throws Refused when the database cannot say */
  holdsAny(objectIds: readonly string[]): Promise<boolean>;
  /** How many rows exist for the agent. @throws Refused when the database cannot say */
  size(): Promise<number>;
}

/** Makes views: for watching, where the agent's rights are asked anew each time something may be told. */
export abstract class RowViews {
  /** @throws Refused and Unauthorized as reading would be */
  abstract open(context: CallContext, className: string, operation: WatchedOperation): Promise<RowView>;
}
