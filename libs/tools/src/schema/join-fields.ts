import { ALWAYS_KEEP, type ClassPolicy } from '#policy';

const kept = new Set<string>(ALWAYS_KEEP);
const own = (fields: readonly string[]) => fields.filter((field) => !kept.has(field));

/** The allowlist as declared, without the fields every class keeps. */
export function allowedFields({ fields }: ClassPolicy): readonly string[] {
  return own(fields ?? []);
}

/**
 * What an included row of the class is cut to: its join fields, else its allowlist without large fields, else (only when
 * large fields are declared) its declared properties without them. Empty: included rows come whole.
 * @param declared wire names of the declared properties that the class has
 */
export function joinFields(policy: ClassPolicy, declared: readonly string[]): readonly string[] {
  if (policy.joinFields && policy.joinFields.length > 0) return own(policy.joinFields);
  const light = (fields: readonly string[]) =>
    own(fields.filter((field) => !policy.largeFields.includes(field)));
  if (policy.fields) return light(policy.fields);
  return policy.largeFields.length > 0 ? light(declared) : [];
}
