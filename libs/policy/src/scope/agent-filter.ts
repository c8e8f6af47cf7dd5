import {
  type ClassFilters,
  type FilterConstraint,
  filterEntries,
  type FilterEntry,
  type FilterSubject,
  isConstraint,
  Refused,
  refuse,
} from '#core';
import type { MissingColumn } from '../compile/bind-policy.js';

const isFixed = (entry: FilterEntry): entry is FilterConstraint => typeof entry !== 'function';

/** The constraint on a class; null when there is none, undefined when a function computes it. */
export function findFixedFilter(
  filters: ClassFilters,
  className: string,
): FilterConstraint | null | undefined {
  const entries = filterEntries(filters, className);
  if (entries.length === 0) return null;
  return entries.every(isFixed) ? entries.reduce<FilterConstraint>(overlayFilter, {}) : undefined;
}

/** Replaces what `below` says of the same columns. `$or` and the like are no columns: both hold. */
function overlayFilter(below: FilterConstraint, entry: FilterConstraint): FilterConstraint {
  const both = Object.keys(entry).filter((key) => key.startsWith('$') && key in below);
  const all = both.map((key) => ({ [key]: below[key] }));
  const merged = { ...below, ...entry };
  return all.length > 0
    ? { ...merged, $and: [...all, ...(Array.isArray(merged.$and) ? merged.$and : [])] }
    : merged;
}

/** @throws Refused when a function throws, or does not return a constraint object */
export async function evaluateFilter(
  filters: ClassFilters,
  subject: FilterSubject,
  className: string,
): Promise<FilterConstraint> {
  let merged: FilterConstraint = {};
  for (const entry of filterEntries(filters, className)) {
    const constraint = isFixed(entry) ? entry : await callFilter(entry, subject, className);
    merged = overlayFilter(merged, constraint);
  }
  return merged;
}

async function callFilter(
  filter: Exclude<FilterEntry, FilterConstraint>,
  subject: FilterSubject,
  className: string,
): Promise<FilterConstraint> {
  let constraint: unknown;
  try {
    constraint = await filter(subject);
  } catch (error) {
    throw createFilterFailure(
      className,
      error instanceof Error ? `${error.name}: ${error.message}` : 'it threw',
    );
  }
  if (isConstraint(constraint)) return constraint;
  throw createFilterFailure(className, 'it returned no constraint object');
}

/** The error of translating a constraint that a function returned is logged for the operator and not sent to the caller. */
export function untranslatable(error: unknown, className: string): unknown {
  if (!(error instanceof Refused) || error.refusal.details?.kind === 'agent_value') return error;
  return createFilterFailure(className, error.refusal.cause ?? error.refusal.message);
}

/** A filter on an unknown column would match all rows or none. */
export function unknownColumn({ className, written }: MissingColumn, filtered: string): Refused {
  return createFilterFailure(filtered, `it names '${written}', which is no field of '${className}'`);
}

function createFilterFailure(className: string, cause: string): Refused {
  return refuse.agentFilterFailed(className, cause);
}
