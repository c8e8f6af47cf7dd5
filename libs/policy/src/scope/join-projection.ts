import type { ClassPolicy } from '../model/class-policy.js';
import { ALWAYS_KEEP } from '../model/class-policy.js';
import type { ClassSchema } from '../model/class-schema.js';
import { isInternalField } from '../model/internal-fields.js';

/** What of a class is returned when it comes along as an included pointer. */
export interface JoinProjection {
  readonly source: 'join_fields' | 'allowlist_minus_large' | 'field_map_minus_large';
  /** Without the always-kept three. */
  readonly fields: readonly string[];
  /** Large fields that are left out. */
  readonly dropped: readonly string[];
}

/** First non-empty of: join fields; allowlist − large fields; all fields − large fields. Null: nothing to project. */
export function joinProjection(policy: ClassPolicy, schema: ClassSchema | undefined): JoinProjection | null {
  const large = new Set(policy.largeFields);
  const projection = (source: JoinProjection['source'], fields: readonly string[]): JoinProjection => {
    const kept = fields.filter((name) => !isInternalField(name));
    return { source, fields: kept, dropped: policy.largeFields.filter((name) => !kept.includes(name)) };
  };
  if (policy.joinFields && policy.joinFields.length > 0) return projection('join_fields', policy.joinFields);
  const readable = policy.fields?.filter((name) => !large.has(name));
  if (readable && readable.length > 0) return projection('allowlist_minus_large', readable);
  if (large.size === 0 || !schema) return null;
  const own = [...schema.fields.keys()].filter(
    (name) => !large.has(name) && name !== 'ACL' && !(ALWAYS_KEEP as readonly string[]).includes(name),
  );
  return projection('field_map_minus_large', own);
}
