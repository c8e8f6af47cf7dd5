import type { GovernedClass } from '#data';
import { FieldNames, fieldsNamed, rootOf } from '#policy';

/**
 * The default filter of a class as an agent may know it: not at all when it speaks of a column that the agent may not name, or of
 * another class, which may be out of its sight. It applies either way.
 */
export function toldDefaultFilter({ fields, schema, policy }: GovernedClass) {
  const { canonicalFilter } = policy;
  if (canonicalFilter === null || JSON.stringify(canonicalFilter).includes('"className"')) return null;
  const known = new Set(fields);
  const isDenied = (name: string) => !known.has(name) && (policy.fields !== null || schema.fields.has(name));
  const named = fieldsNamed(canonicalFilter, new FieldNames(policy.aliases));
  return named.some((path) => isDenied(rootOf(path))) ? null : canonicalFilter;
}
