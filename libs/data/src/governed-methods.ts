import type { Tier } from '#agent';
import type { GovernedWrites } from './governed-writes.js';

/** What running a declared method needs of the class it belongs to, bound to one call. */
export interface GovernedMethods {
  /** The class gate. @returns the canonical name. @throws Refused */
  enter(className: unknown): Promise<string>;
  /**
   * Class permissions of a method's tier: readonly asks `find`, write `update`, admin `delete`.
   * @throws Refused `clp_denied`; `unenforceable_scope` for what a method could do to rows beyond the agent's own rights
   */
  permit(className: string, permission: Tier, type: 'instance' | 'class'): Promise<void>;
  /** For methods above readonly; what they write goes through the same rules as any write. */
  writes(): GovernedWrites;
  /** A method's result as the agent may see it: objects cut to their class's allowlist and redacted, at any depth. */
  present(result: unknown): Promise<unknown>;
}
