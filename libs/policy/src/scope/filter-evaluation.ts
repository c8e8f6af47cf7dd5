import {
  type ClassFilters,
  filterEntries,
  type FilterConstraint,
  type FilterEntry,
  type FilterSubject,
  isConstraint,
  Refused,
  refusals,
} from '#agent';
import type { MissingColumn } from '../binding/named-columns.js';

const isFixed = (entry: FilterEntry): entry is FilterConstraint => typeof entry !== 'function';

/** The constraint on a class; null when there is none, undefined when it takes a function to know it. */
export function fixedFilter(filters: ClassFilters, className: string): FilterConstraint | null | undefined {
  const entries = filterEntries(filters, className);
  if (entries.length === 0) return null;
  return entries.every(isFixed)
    ? entries.reduce((merged, entry) => ({ ...merged, ...entry }), {})
    : undefined;
}

/** @throws Refused when a function throws, or returns anything but a constraint object */
export async function evaluateFilter(
  filters: ClassFilters,
  subject: FilterSubject,
  className: string,
): Promise<FilterConstraint> {
  let merged: FilterConstraint = {};
  for (const entry of filterEntries(filters, className)) {
    const constraint = isFixed(entry) ? entry : await ask(entry, subject, className);
    merged = { ...merged, ...constraint };
  }
  return merged;
}

async function ask(
  filter: Exclude<FilterEntry, FilterConstraint>,
  subject: FilterSubject,
  className: string,
): Promise<FilterConstraint> {
  let constraint: unknown;
  try {
    constraint = await filter(subject);
  } catch (error) {
    throw failed(className, error instanceof Error ? `${error.name}: ${error.message}` : 'it threw');
  }
  if (isConstraint(constraint)) return constraint;
  throw failed(className, 'it returned no constraint object');
}

/** What the translator said of a constraint that a function gave is for the operator, not for the caller. */
export function untranslatable(error: unknown, className: string): unknown {
  if (!(error instanceof Refused)) return error;
  return failed(className, error.refusal.cause ?? error.refusal.message);
}

/** A filter that names what the class does not have would leave out nothing, or everything. */
export function unnamedColumn({ className, written }: MissingColumn, filtered: string): Refused {
  return failed(filtered, `it names '${written}', which is no field of '${className}'`);
}

function failed(className: string, cause: string): Refused {
  return new Refused(refusals.agentFilterFailed(className, cause));
}
