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

/** A class of the database as code may name it: by its name, by a class with `@ParseClass`, or by a Mongoose model. */
export type ClassReference = string | (abstract new (...args: never[]) => unknown);

const declaredNames = new WeakMap<object, string>();

/** Keeps which class of the database a class of code stands for. */
export function declareClassName(type: object, className: string): void {
  declaredNames.set(type, className);
}

/** The class of the database that a class of code stands for; null: none. */
export function findDeclaredName(type: object): string | null {
  return declaredNames.get(type) ?? null;
}

/** @throws TypeError for a class of code that stands for no class of the database */
function readClassName(reference: unknown, option: string): unknown {
  if (typeof reference !== 'function') return reference;
  const { modelName } = reference as { readonly modelName?: unknown };
  const name = findDeclaredName(reference) ?? modelName;
  if (typeof name === 'string') return name;
  throw new TypeError(
    `${option}: '${reference.name}' has no @ParseClass and is no Mongoose model: write the name of the class`,
  );
}

/**
 * The value of `classes` with names in place of classes of code. Anything else stays as it is, for the check of names.
 * @throws TypeError for a class of code that stands for no class of the database
 */
export function nameClassReferences(value: unknown): unknown {
  const nameAll = (list: unknown, path: string): unknown =>
    Array.isArray(list) ? list.map((entry) => readClassName(entry, path)) : list;
  if (Array.isArray(value)) return nameAll(value, 'classes');
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, list]) => [key, nameAll(list, `classes.${key}`)]),
  );
}
