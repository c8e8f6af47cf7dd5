import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

// Control, bidi and zero-width characters, and the line ends of other scripts: inside JSON text they are written out.
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]/g;
const HALF_A_CHARACTER = /\\ud[89a-f][0-9a-f]{2}/;

/**
 * A record as the one JSON text it has: the members of every object in order of their names, on one line that drives no
 * terminal. What comes back from a file or a database has the same text.
 */
export function canonicalLine(value: unknown): string {
  // Calling back for every member costs several times the writing.
  const line = isInOrder(value) ? JSON.stringify(value) : JSON.stringify(value, inOrder);
  // JSON can write half a surrogate pair, and no database can keep it.
  if (HALF_A_CHARACTER.test(line)) return canonicalLine(wellFormed(value));
  return line.replace(UNSAFE, written);
}

/** Whether JSON writes it as it stands: every object has its members in order and none of them writes itself. */
function isInOrder(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isInOrder);
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  const names = Object.keys(value);
  return isSorted(names) && names.every((name) => isInOrder((value as Record<string, unknown>)[name]));
}

function inOrder(_name: string, held: unknown): unknown {
  if (typeof held !== 'object' || held === null || Array.isArray(held)) return held;
  const members = held as Record<string, unknown>;
  const names = Object.keys(members);
  if (isSorted(names)) return held;
  return Object.fromEntries(names.sort().map((name) => [name, members[name]]));
}

function isSorted(names: readonly string[]): boolean {
  for (let index = 1; index < names.length; index += 1)
    if ((names[index - 1] as string) > (names[index] as string)) return false;
  return true;
}

function written(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** The same value with a replacement character for every half of one. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return Buffer.from(value, 'utf8').toString('utf8');
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, held]) => [wellFormed(name) as string, wellFormed(held)]),
  );
}

/**
 * Tells whether two calls had the same arguments, and nothing more. Arguments are often short and guessable (a name, a limit),
 * so that a plain hash could be undone by trying: this one needs the key.
 */
export class ArgumentDigest {
  /** Digests under one key compare; the name of the key says which. */
  private readonly name: string;
  /** Made once: every digest would make it anew of the text. */
  private readonly key: KeyObject;

  constructor(key: Buffer | string) {
    this.key = createSecretKey(Buffer.from(key));
    this.name = createHmac('sha256', this.key).update('parley argument digest').digest('hex').slice(0, 8);
  }

  of(tool: string, args: unknown): string {
    return `${this.name}:${createHmac('sha256', this.key)
      .update(`${tool}\n${textOf(args)}`)
      .digest('hex')
      .slice(0, 32)}`;
  }
}

function textOf(args: unknown): string {
  try {
    return canonicalLine(args ?? null);
  } catch {
    // Nested too deep to be written, and so for any tool to use.
    return 'unreadable';
  }
}
