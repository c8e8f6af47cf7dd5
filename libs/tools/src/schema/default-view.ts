import type { GovernedClass } from '#data';
import { fieldsNamed, rootOf } from '#policy';

/**
 * The default filter of a class, so that a caller that opts out can write it in its own `where`. It may name columns outside
 * `fields`, whose values stay unreadable; not one that is masked or protected, and no class out of the agent's sight. Null then.
 */
export function toldDefaultFilter(known: GovernedClass, knownClasses: ReadonlySet<string>) {
  const { canonicalFilter, names } = known.policy;
  if (canonicalFilter === null) return null;
  if (![...classesNamed(canonicalFilter)].every((className) => knownClasses.has(className))) return null;
  const named = fieldsNamed(canonicalFilter, names).map(rootOf);
  return named.some((root) => isSecret(root, known)) ? null : canonicalFilter;
}

/** Masked or protected for anybody: then even the name of the column may be news. */
function isSecret(root: string, { fields, policy, schema }: GovernedClass): boolean {
  if (fields.includes(root)) return false;
  const listed = policy.fields === null ? schema.fields.has(root) : policy.fields.includes(root);
  // What the policy lets be read and is not readable, permissions or a mask withhold from this agent.
  if (listed || [...policy.masks.keys()].some((path) => rootOf(path) === root)) return true;
  const guarded = schema.classLevelPermissions?.['protectedFields'] ?? {};
  return Object.values(guarded as object).some((names) => Array.isArray(names) && names.includes(root));
}

function* classesNamed(value: unknown): Generator<string> {
  if (value === null || typeof value !== 'object') return;
  for (const [key, member] of Object.entries(value)) {
    if (key === 'className') yield String(member);
    else yield* classesNamed(member);
  }
}
