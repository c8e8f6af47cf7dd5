import type { ClassLevelPermissions } from '#policy';

const OPERATIONS = ['find', 'count', 'get', 'create', 'update', 'delete', 'addField'];

function principalName(key: string): string {
  if (key === '*') return 'public';
  if (key === 'requiresAuthentication') return 'authenticated';
  return key.startsWith('role:') ? key : `user:${key}`;
}

function principals(rule: unknown, readable: ReadonlySet<string>): string[] | null {
  if (typeof rule === 'boolean') return rule ? ['public'] : ['none'];
  if (rule === null || typeof rule !== 'object' || Array.isArray(rule)) return null;
  const { pointerFields, ...keys } = rule as Record<string, unknown>;
  const named = Object.keys(keys).filter((key) => keys[key] === true);
  const owners = (Array.isArray(pointerFields) ? pointerFields : []).filter((field) =>
    readable.has(field as string),
  );
  return [...named.map(principalName), ...owners.map((field) => `pointer:${field as string}`)];
}

/**
 * Who may do what with a class, in words. Only operations: `protectedFields` would name fields that are protected,
 * and pointer permissions are told for readable fields alone.
 */
export function describePermissions(
  permissions: ClassLevelPermissions | null,
  readable: ReadonlySet<string>,
): Record<string, string[]> {
  const told: Record<string, string[]> = {};
  for (const operation of OPERATIONS) {
    const names =
      permissions && Object.hasOwn(permissions, operation)
        ? principals(permissions[operation], readable)
        : null;
    if (names) told[operation] = names;
  }
  return told;
}
