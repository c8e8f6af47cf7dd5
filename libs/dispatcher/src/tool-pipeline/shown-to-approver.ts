import { isJsonObject, type JsonObject } from '../json-object.js';

/** Bytes of a preview, as JSON. */
const MAX_PREVIEW = 16_384;
const MAX_TEXT = 500;
const MAX_ITEMS = 20;
const CREDENTIALS =
  /^(password|secret|token|credentials?|auth_?data|recovery_?codes|(session|access|refresh|api|private|master)_?(token|key))$/i;

/**
 * A preview as it leaves for a person: without values under names of credentials, which stay named, long text and lists
 * cut. What is too large even so is not shown at all.
 */
export function shownToApprover(preview: JsonObject): JsonObject {
  const withheld = new Set<string>();
  const shown = shorten(preview, withheld) as JsonObject;
  const told = withheld.size > 0 ? { ...shown, withheld: [...withheld].sort() } : shown;
  if (Buffer.byteLength(JSON.stringify(told)) <= MAX_PREVIEW) return told;
  return { tool: preview['tool'], preview_error: 'too large to be shown' };
}

function shorten(value: unknown, withheld: Set<string>): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (Array.isArray(value)) {
    const items = value.slice(0, MAX_ITEMS).map((item) => shorten(item, withheld));
    return value.length > MAX_ITEMS ? [...items, `… ${value.length - MAX_ITEMS} more`] : items;
  }
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, held]) => {
      if (!CREDENTIALS.test(name)) return [[name, shorten(held, withheld)]];
      withheld.add(name);
      return [];
    }),
  );
}
