import type { Refusal } from '#agent';
import type { ClassSchema } from './class-schema.js';
import type { FieldNames } from './field-names.js';

/** One class as one agent may see it: the answer of the class gate when it did not refuse. */
export interface ClassAccess {
  readonly className: string;
  readonly schema: ClassSchema | undefined;
  readonly names: FieldNames;
  /** Readable wire names, the always-kept three included; `null` when the class has no allowlist. */
  readonly readable: ReadonlySet<string> | null;
}

/** Why another class is reached: decides the wording of a refusal, never whether it happens. */
export type ReachSite = 'include' | 'pipeline' | 'constraint' | 'pointer';

/** Asks the one class gate about a class reached through a pointer, a join or a cross-class operator. */
export interface ClassReach {
  reach(className: string, site: ReachSite): ClassAccess | Refusal;
}

export function isRefusal(answer: ClassAccess | Refusal): answer is Refusal {
  return 'gate' in answer;
}
