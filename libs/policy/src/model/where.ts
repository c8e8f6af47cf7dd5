/**
 * A constraint in Parse form with wire names, after translation: pointers, dates and other typed values are
 * `{ __type }` objects, keys are wire names or operators. Only `translateWhere` and the policy of the operator create one.
 */
export type Where = Readonly<Record<string, unknown>>;

/** A pipeline in wire names that contains every predicate and projection of the policy. */
export type GovernedPipeline = readonly Readonly<Record<string, unknown>>[];

/** The conjunction of constraints without empty ones; the empty constraint when none is left. */
export function allOf(...parts: readonly (Where | null | undefined)[]): Where {
  const kept = parts.filter(
    (part): part is Where => part !== null && part !== undefined && Object.keys(part).length > 0,
  );
  return kept.length <= 1 ? (kept[0] ?? {}) : { $and: kept };
}

export type PlainObject = Readonly<Record<string, unknown>>;

/** An object as in JSON: no class instance, no array, not null. */
export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
