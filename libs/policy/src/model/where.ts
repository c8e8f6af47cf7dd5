/**
 * A constraint in Parse form with wire names, after translation: pointers, dates and other typed values are
 * `{ __type }` objects, keys are wire names or operators. Only the translator and operator-declared policy make one.
 */
export type Where = Readonly<Record<string, unknown>>;

/** A pipeline in logical (wire) names with every predicate and projection of the policy already in it. */
export type GovernedPipeline = readonly Readonly<Record<string, unknown>>[];

/** `and` of constraints, without empty ones; the empty constraint when nothing is left. */
export function allOf(...parts: readonly (Where | null | undefined)[]): Where {
  const kept = parts.filter(
    (part): part is Where => part !== null && part !== undefined && Object.keys(part).length > 0,
  );
  return kept.length <= 1 ? (kept[0] ?? {}) : { $and: kept };
}

export type PlainObject = Readonly<Record<string, unknown>>;

/** An object as JSON makes it: no class instance, no array, not null. */
export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
