/** Parse's own classes, which may be written with or without the leading underscore. */
const SYSTEM_CLASSES = new Set([
  '_User',
  '_Role',
  '_Session',
  '_Installation',
  '_Product',
  '_Audience',
  '_JobStatus',
  '_JobSchedule',
  '_PushStatus',
  '_Hooks',
  '_GlobalConfig',
  '_GraphQLConfig',
  '_Idempotency',
]);

const CLASS_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Up to 32 characters, or a UUID, which has 36. */
const OBJECT_ID = /^(?:[A-Za-z0-9_-]{1,32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

export function isClassName(value: unknown): value is string {
  return typeof value === 'string' && CLASS_NAME.test(value);
}

export function isObjectId(value: unknown): value is string {
  return typeof value === 'string' && OBJECT_ID.test(value);
}

/** The stored name: `User` is `_User`; anything else is itself. */
export function canonicalClassName(name: string): string {
  return SYSTEM_CLASSES.has(`_${name}`) ? `_${name}` : name;
}

/** A class of Parse's own, by its stored name. */
export function isParseClassName(name: string): boolean {
  return SYSTEM_CLASSES.has(canonicalClassName(name));
}

export function isSystemClassName(name: string): boolean {
  return name.startsWith('_');
}
