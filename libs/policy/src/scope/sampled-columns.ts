import type { ClassSchema, FieldSchema } from '../model/class-schema.js';
import { takeRoot } from '../model/field-names.js';
import type { ClassPolicy } from '../model/policy.js';
import { listConstrainedFields } from '../model/where.js';

/** The class with the columns and members that a validator or the policy names. */
export function withoutSampled(schema: ClassSchema, policy: ClassPolicy): ClassSchema {
  const named = new Set([
    ...(policy.fields ?? []),
    ...(policy.joinFields ?? []),
    ...policy.properties.keys(),
    ...(policy.tenantScope ? [takeRoot(policy.tenantScope.field)] : []),
    // It is shown to agents, which may write it themselves.
    ...[...listConstrainedFields(policy.canonicalFilter ?? {})].map((name) =>
      policy.names.resolveColumn(name),
    ),
  ]);
  const fields = [...schema.fields].flatMap(([name, field]) =>
    field.origin === 'sample' && !named.has(name) ? [] : [[name, withoutSampledParts(field)] as const],
  );
  return { ...schema, fields: new Map(fields) };
}

function withoutSampledParts({ members, entries, ...field }: FieldSchema): FieldSchema {
  const known = [...(members ?? [])].filter(([, { origin }]) => origin !== 'sample');
  return {
    ...field,
    ...(known.length > 0 && {
      members: new Map(known.map(([name, member]) => [name, withoutSampledParts(member)])),
    }),
    ...(entries && entries.origin !== 'sample' && { entries: withoutSampledParts(entries) }),
  };
}
