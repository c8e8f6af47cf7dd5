import { isUtf8 } from 'node:buffer';

/** Levels of objects and arrays inside each other; the message itself is the first. */
const MAX_DEPTH = 20;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `[` and `{` differ in one bit only, and so do `]` and `}`. */
const CASE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Counts brackets outside strings, so that a deep body is refused before anything is built from it. */
function tooDeep(body: Buffer): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] as number;
    if (quoted) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if ((byte | CASE_BIT) === OPEN) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if ((byte | CASE_BIT) === CLOSE) depth -= 1;
  }
  return false;
}

export type JsonReading = { readonly ok: true; readonly value: unknown } | { readonly ok: false };

/** Parses a request body. An empty one is `{}`; bytes that are no UTF-8 are no JSON. */
export function readJson(body: Buffer): JsonReading {
  if (body.length === 0) return { ok: true, value: {} };
  if (!isUtf8(body) || tooDeep(body)) return { ok: false };
  try {
    return { ok: true, value: JSON.parse(body.toString('utf8')) as unknown };
  } catch {
    return { ok: false };
  }
}
