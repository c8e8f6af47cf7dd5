import type { SchemaSnapshot } from '../model/class-schema.js';
import type { Policy } from '../model/policy.js';

/**
 * The classes of the database that exist under a policy. The catalogue reads those that the current configuration lists; a call
 * that was admitted under an earlier one has its own list.
 */
export function filterExistingClasses(
  schemas: SchemaSnapshot,
  { classes, switches }: Policy,
): SchemaSnapshot {
  const exists = (className: string) => {
    const declared = classes.get(className);
    const schema = schemas.get(className);
    // Rules of a class are those of one database: a class of the same name in another one is not that class.
    if (schema && schema.database !== (declared?.database ?? undefined)) return false;
    return declared !== undefined || (switches.unlistedClasses === 'allow' && schema?.storage !== 'plain');
  };
  const names = schemas.classNames().filter(exists);
  if (names.length === schemas.classNames().length) return schemas;
  return {
    get: (className) => (exists(className) ? schemas.get(className) : undefined),
    classNames: () => names,
    isAway: (className) => classes.has(className) && schemas.isAway?.(className) === true,
  };
}

/** Whether two snapshots have the same classes with the same columns, which is all that a binding depends on. */
export function haveSameColumns(one: SchemaSnapshot, other: SchemaSnapshot): boolean {
  const names = one.classNames();
  if (names.length !== other.classNames().length) return false;
  return names.every((name) => {
    const [fields, others] = [one.get(name)?.fields, other.get(name)?.fields];
    if (!fields || !others || fields.size !== others.size) return false;
    if (one.get(name)?.storage !== other.get(name)?.storage) return false;
    for (const [field, { type, targetClass }] of fields) {
      const counterpart = others.get(field);
      if (counterpart?.type !== type || counterpart.targetClass !== targetClass) return false;
    }
    return true;
  });
}
