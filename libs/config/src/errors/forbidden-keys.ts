import type { SchemaFinding } from './schema-errors.js';

/** Names by which an object reaches what all objects share. No option, class, agent or column of a configuration has one. */
export const FORBIDDEN_KEYS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

const isForbidden = (key: string) => FORBIDDEN_KEYS.includes(key);

/** Deeper than anything that is meant. */
const DEEPEST = 64;
/** Values of one configuration; aliases count each time they are used. */
const MOST_VALUES = 200_000;

/**
 * Keys that are refused at every depth, whatever the schema says of the place, and what no file can hold: objects that
 * hold themselves, or far more than is meant.
 */
export function forbiddenKeys(value: unknown, path: readonly string[] = []): SchemaFinding[] {
  const findings: SchemaFinding[] = [];
  let left = MOST_VALUES;
  const walk = (at: unknown, here: readonly string[], above: ReadonlySet<unknown>): void => {
    left -= 1;
    if (at === null || typeof at !== 'object' || left < 0) return;
    if (above.has(at) || here.length > DEEPEST) {
      const message = above.has(at) ? 'must not hold itself' : `must not be nested more than ${DEEPEST} deep`;
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
  walk(value, path, new Set());
  if (left < 0) findings.push({ path, message: `must not hold more than ${MOST_VALUES} values` });
  return findings;
}
