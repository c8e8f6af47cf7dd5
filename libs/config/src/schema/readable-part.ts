import type { ConfigIssue } from '../config-error.js';
import { schemaErrors, type SchemaFinding, type SchemaNode } from '#schema';

/** Names by which an object reaches what all objects share. No option, class, agent or column of a configuration has one. */
export const FORBIDDEN_KEYS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

const isForbidden = (key: string) => FORBIDDEN_KEYS.includes(key);

/** Deeper than anything that is meant. */
const MAX_DEPTH = 64;
/** Values of one configuration; aliases count each time they are used. */
const MOST_VALUES = 200_000;

/**
 * Keys that are refused at every depth, whatever the schema accepts there, and what no file can hold: objects that
 * hold themselves, or far more than is meant.
 */
function forbiddenKeys(value: unknown): SchemaFinding[] {
  const findings: SchemaFinding[] = [];
  let left = MOST_VALUES;
  const walk = (at: unknown, here: readonly string[], above: ReadonlySet<unknown>): void => {
    left -= 1;
    if (at === null || typeof at !== 'object' || left < 0) return;
    if (above.has(at) || here.length > MAX_DEPTH) {
      const message = above.has(at)
        ? 'must not hold itself'
        : `must not be nested more than ${MAX_DEPTH} deep`;
      findings.push({ path: here, message });
      return;
    }
    const within = new Set(above).add(at);
    for (const key of Object.keys(at)) {
      if (isForbidden(key))
        findings.push({ path: [...here, key], message: `the name '${key}' is refused everywhere` });
      else walk((at as Record<string, unknown>)[key], [...here, key], within);
    }
  };
  walk(value, [], new Set());
  if (left < 0) findings.push({ path: [], message: `must not hold more than ${MOST_VALUES} values` });
  return findings;
}

/** A value without the parts that are wrong in form, so that its meaning can be checked at the same time. */
export interface ReadablePart {
  /** What is wrong with the form: keys, types and bounds. */
  readonly errors: readonly ConfigIssue[];
  /** The rest, which fits the schema. */
  readonly value: unknown;
  /**
   * Of errors in the meaning of the rest, those that are not merely a consequence of an error in the form: at the place of
   * one, or depending on an option that has one. Their paths are those of the whole value.
   */
  independent(errors: readonly ConfigIssue[]): ConfigIssue[];
}

type Path = readonly string[];

/** Removing one error can show another; each round removes something. */
const MOST_ROUNDS = 64;

/**
 * @param known paths that are wrong already, with what was found there
 * @param prefix of the paths of errors
 */
export function readablePart(
  schema: SchemaNode,
  given: unknown,
  { known = [], prefix = [] }: { readonly known?: readonly SchemaFinding[]; readonly prefix?: Path } = {},
): ReadablePart {
  const places = new Places();
  const forbidden = forbiddenKeys(given);
  const first = [...known, ...forbidden];
  let value = forbidden.some(({ path }) => path.length === 0) ? undefined : places.without(given, first);
  let findings: readonly SchemaFinding[] = value === undefined ? [] : schemaErrors(schema, value);
  const all = [...forbidden, ...findings.map((one) => ({ ...one, path: places.original(one.path) }))];
  for (let round = 0; findings.length > 0 && round < MOST_ROUNDS; round += 1) {
    value = places.without(value, findings);
    findings = value === undefined ? [] : schemaErrors(schema, value);
  }
  const covered = [...known, ...all].flatMap(({ path, suggestion }) => {
    const meant = suggestion === undefined ? null : [...path.slice(0, -1), suggestion];
    // Where the key that was meant is given as well, its errors are its own.
    return meant === null || isGiven(given, meant) ? [path] : [path, meant];
  });
  const joinPath = (path: Path) => [...prefix, ...path].join('.');
  const covers = covered.map(joinPath);
  return {
    errors: all.map(({ path, message, accepted, suggestion }) => ({
      path: joinPath(path),
      message,
      ...(accepted && { accepted }),
      ...(suggestion !== undefined && { suggestion }),
    })),
    value: findings.length > 0 ? undefined : value,
    independent: (errors) =>
      errors
        .map((error) => ({ ...error, path: places.findOriginal(error.path, prefix.length) }))
        .filter(
          ({ path, related = [] }) =>
            !covers.some((at) => isAt(path, at) || isAt(at, path)) &&
            !related.some((other) =>
              covers.some((at) => concerns(places.findOriginal(other, prefix.length), at)),
            ),
        ),
  };
}

function isGiven(value: unknown, path: Path): boolean {
  const [key, ...rest] = path;
  if (key === undefined) return value !== undefined;
  return (
    value !== null &&
    typeof value === 'object' &&
    Object.hasOwn(value, key) &&
    isGiven((value as Readonly<Record<string, unknown>>)[key], rest)
  );
}

/** Whether an option has an error: at its place or above it, and for `NAME.*` also within it. */
const concerns = (option: string, at: string) =>
  option.endsWith('.*') ? isAt(option.slice(0, -2), at) || isAt(at, option.slice(0, -2)) : isAt(option, at);

/** Whether a dotted path is that of a place or within it. */
const isAt = (path: string, place: string) => place === '' || path === place || path.startsWith(`${place}.`);

/** Entries that were taken out of lists, so that errors in those after them still have their own paths. */
class Places {
  /** Of each shortened list, by the path that it has now: the places that its entries had. */
  private readonly kept = new Map<string, readonly number[]>();

  original(path: Path): string[] {
    const original: string[] = [];
    for (const [depth, segment] of path.entries()) {
      const places = this.kept.get(JSON.stringify(path.slice(0, depth)));
      original.push(places ? String(places[Number(segment)] ?? segment) : segment);
    }
    return original;
  }

  /** @param skipped segments in front that are not of the value */
  findOriginal(path: string, skipped: number): string {
    const segments = path === '' ? [] : path.split('.');
    return [...segments.slice(0, skipped), ...this.original(segments.slice(skipped))].join('.');
  }

  /** A copy without what is at these paths; undefined when nothing is left. */
  without(value: unknown, findings: readonly SchemaFinding[]): unknown {
    const paths = findings.map(({ path, missing }) => (missing ? path.slice(0, -1) : path));
    return paths.length === 0 ? value : this.copyValue(value, [], paths);
  }

  private copyValue(value: unknown, here: Path, paths: readonly Path[]): unknown {
    if (paths.some((path) => path.length === here.length)) return undefined;
    if (paths.length === 0 || value === null || typeof value !== 'object') return value;
    const below = (key: string) => paths.filter((path) => path[here.length] === key);
    if (!Array.isArray(value))
      return Object.fromEntries(
        Object.entries(value).flatMap(([key, member]) => {
          const copy = this.copyValue(member, [...here, key], below(key));
          return copy === undefined ? [] : [[key, copy]];
        }),
      );
    const entries = value
      .map((member, index) => ({
        index,
        copy: this.copyValue(member, [...here, String(index)], below(String(index))),
      }))
      .filter(({ copy }) => copy !== undefined);
    const id = JSON.stringify(here);
    const before = this.kept.get(id);
    this.kept.set(
      id,
      entries.map(({ index }) => before?.[index] ?? index),
    );
    return entries.map(({ copy }) => copy);
  }
}
