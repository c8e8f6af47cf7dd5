import { rootOf } from '#policy';
import type { IncludePlan, ParseRow } from '../record-store.js';

/** What of a row the caller asked for. */
interface Request {
  readonly keys?: readonly string[] | undefined;
  readonly include: readonly IncludePlan[];
}

/**
 * The same request with whole columns: redaction knows a withheld object by its class name, which a path to one of its
 * members would leave behind in the store.
 */
export function widened({ keys, include }: Request): Request {
  return {
    ...(keys && { keys: [...new Set(keys.map(rootOf))] }),
    include: include.map((plan) => ({ ...plan, ...widened(plan) })),
  };
}

/** Cuts redacted rows down to the paths that were asked for, their included rows too. */
export function narrowing({ keys, include }: Request): (row: ParseRow) => ParseRow {
  const plans = new Map(include.map((plan) => [plan.field, narrowing(plan)]));
  const paths = pathsByRoot(keys ?? []);
  if (plans.size === 0 && paths.size === 0) return (row) => row;
  return (row) =>
    Object.fromEntries(
      Object.entries(row).flatMap(([field, value]) => {
        const narrow = plans.get(field);
        if (narrow) return [[field, narrowedIncluded(value, narrow)]];
        const within = paths.get(field);
        if (!within || isTyped(value)) return [[field, value]];
        return isObject(value) ? [[field, picked(value, within)]] : [];
      }),
    );
}

function narrowedIncluded(value: unknown, narrow: (row: ParseRow) => ParseRow): unknown {
  if (Array.isArray(value)) return value.map((element) => narrowedIncluded(element, narrow));
  return isTyped(value) && value['__type'] === 'Object' ? narrow(value) : value;
}

/** Root → paths below it, for roots that are not asked for whole. */
function pathsByRoot(keys: readonly string[]): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const key of keys) {
    const root = rootOf(key);
    if (root === key) continue;
    paths.set(root, [...(paths.get(root) ?? []), key.slice(root.length + 1)]);
  }
  for (const key of keys) paths.delete(key);
  return paths;
}

/** As the database projects: members that are not objects have nothing below them; a placeholder stays whole. */
function picked(value: object, paths: readonly string[]): unknown {
  if (Array.isArray(value)) return value.filter(isObject).map((element) => picked(element, paths));
  if ('__redacted' in value) return value;
  const below = pathsByRoot(paths);
  const whole = new Set(paths.filter((path) => !path.includes('.')));
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
      if (whole.has(key)) return [[key, member]];
      const within = below.get(key);
      return within && isObject(member) ? [[key, picked(member, within)]] : [];
    }),
  );
}

function isObject(value: unknown): value is ParseRow {
  return typeof value === 'object' && value !== null;
}

function isTyped(value: unknown): value is ParseRow {
  return isObject(value) && typeof value['__type'] === 'string';
}
