import type { Refusal } from '#agent';
import type { ClassSchema } from './class-schema.js';
import { type FieldNames, rootOf } from './field-names.js';

/** One class as one agent may see it: the answer of the class gate when it did not refuse. */
export interface ClassAccess {
  readonly className: string;
  readonly schema: ClassSchema | undefined;
  readonly names: FieldNames;
  /** Readable wire names, the always-kept three included; `null` when the class has no allowlist. */
  readonly readable: ReadonlySet<string> | null;
  /** Columns that lead into a class withheld from the agent, by wire name: their values are not the caller's to use. */
  readonly withheld?: ReadonlyMap<string, WithheldTarget>;
}

/** A class that a column leads into and the agent may not know, with what is said of it. */
export interface WithheldTarget {
  readonly className: string;
  readonly refusal: Refusal;
}

const POINTER_PREFIX = '_p_';

/** The withheld class behind the root of a wire path, whether it is named by field or by storage column. */
export function withheldTarget(path: string, access: ClassAccess): WithheldTarget | undefined {
  const root = rootOf(path);
  const field = root.startsWith(POINTER_PREFIX) ? root.slice(POINTER_PREFIX.length) : root;
  return access.withheld?.get(field);
}

/** Why another class is reached: decides the wording of a refusal, never whether it happens. */
export type ReachSite = 'include' | 'pipeline' | 'constraint';

/** Asks the one class gate about a class reached through a pointer, a join or a cross-class operator. */
export interface ClassReach {
  reach(className: string, site: ReachSite): ClassAccess | Refusal;
}

export function isRefusal(answer: ClassAccess | Refusal): answer is Refusal {
  return 'gate' in answer;
}
