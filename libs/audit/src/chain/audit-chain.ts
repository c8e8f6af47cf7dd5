import { createHmac, createSecretKey, hash, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import { setOwn } from '#core';
import type { ChainHead } from '../audit-record.js';

/** The `prev` of the first record of a chain. */
export const NOTHING_BEFORE = '';

/** A record with its hash. The hash covers all other members and, through `prev`, all records before it. */
export type SealedRecord = Readonly<Record<string, unknown>> & {
  /** Id of the chain. A process writes one chain, from its start to its end. */
  readonly chain: string;
  /** Position in the chain, from 0. */
  readonly seq: number;
  /** The `hash` of the previous record. */
  readonly prev: string;
  /** ISO 8601. */
  readonly at: string;
  /** Kind of the record. */
  readonly type: string;
  /** Hash over all other members of the record. */
  readonly hash: string;
};

export interface SealedLine {
  readonly record: SealedRecord;
  /** Without a line end. */
  readonly line: string;
}

/** Seals records with SHA-256 of their canonical JSON, or with HMAC-SHA256 when there is a key. */
export class RecordSeal {
  constructor(private readonly key: string | null = null) {}

  seal(record: Omit<SealedRecord, 'hash'>): SealedLine {
    const text = canonicalLine(record);
    const sealed = this.computeHash(text);
    return { record: { ...record, hash: sealed } as SealedRecord, line: appendHash(text, sealed) };
  }

  /** @param line the text as it was read: the same value could be written in another way */
  holds({ hash: sealed, ...record }: SealedRecord, line?: string): boolean {
    const text = canonicalOrNull(record);
    if (text === null) return false;
    const expected = Buffer.from(this.computeHash(text));
    const given = Buffer.from(sealed);
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) return false;
    return line === undefined || line === appendHash(text, sealed);
  }

  private computeHash(text: string): string {
    if (this.key === null) return hash('sha256', text);
    return createHmac('sha256', this.key).update(text).digest('hex');
  }
}

function appendHash(text: string, sealed: string): string {
  return `${text.slice(0, -1)},"hash":"${sealed}"}`;
}

/** @returns null for a value that is not a sealed record */
export function readSealed(value: unknown): SealedRecord | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const { chain, seq, prev, hash, at, type } = value as Record<string, unknown>;
  const isText = [chain, prev, hash, at, type].every((member) => typeof member === 'string');
  return isText && Number.isSafeInteger(seq) && (seq as number) >= 0 ? (value as SealedRecord) : null;
}

/** @returns null for a line that is not a sealed record */
export function readLine(line: string): SealedRecord | null {
  try {
    return readSealed(JSON.parse(line));
  } catch {
    return null;
  }
}

/** The records of one process in order, each sealed together with the record before it. */
export class AuditChain {
  /** 96 random bits. */
  readonly id = randomBytes(12).toString('hex');
  private next = 0;
  private last = NOTHING_BEFORE;

  constructor(private readonly seal: RecordSeal) {}

  append(
    content: Readonly<Record<string, unknown>> & { readonly at: string; readonly type: string },
  ): SealedLine {
    const sealed = this.seal.seal({ ...content, chain: this.id, seq: this.next, prev: this.last });
    this.next += 1;
    this.last = sealed.record.hash;
    return sealed;
  }

  /** Null before the first record. */
  get head(): ChainHead | null {
    return this.next === 0 ? null : { chain: this.id, seq: this.next - 1, hash: this.last };
  }
}

// Control, bidi and zero-width characters, and line ends of other scripts: they are escaped in JSON text.
// eslint-disable-next-line no-control-regex
const UNSAFE_CHARACTERS = /[\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]/g;
const HALF_A_CHARACTER = /\\ud[89a-f][0-9a-f]{2}/;

/**
 * The canonical JSON text of a record: members sorted by name, on one line without terminal control characters. A
 * record read from a file or a database has the same text.
 */
export function canonicalLine(value: unknown): string {
  const sorted = sortMembers(value);
  // A replacer function costs several times the serialisation; only a value with `toJSON` needs one.
  const line = sorted === HAS_OWN_JSON ? JSON.stringify(value, inOrder) : JSON.stringify(sorted);
  // JSON can hold a lone surrogate, and databases cannot store it.
  if (line.includes('\\ud') && HALF_A_CHARACTER.test(line)) return canonicalLine(wellFormed(value));
  return line.replace(UNSAFE_CHARACTERS, escapeCharacter);
}

/** Null for a value that is nested too deep to be written, and so was not written here. */
function canonicalOrNull(value: unknown): string | null {
  try {
    return canonicalLine(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Stands for a value in which an object says itself how it is written. */
const HAS_OWN_JSON = Symbol('toJSON');

/** The value with the members of every object sorted by name: itself where they are. */
function sortMembers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return sortElements(value);
  const members = value as Readonly<Record<string, unknown>>;
  if (typeof members['toJSON'] === 'function') return HAS_OWN_JSON;
  const names = Object.keys(members);
  const wasSorted = isSorted(names);
  let copy: Record<string, unknown> | undefined;
  if (!wasSorted) {
    names.sort();
    copy = {};
  }
  for (const name of names) {
    const held = members[name];
    const sorted = sortMembers(held);
    if (sorted === HAS_OWN_JSON) return HAS_OWN_JSON;
    if (sorted !== held) copy ??= { ...members };
    if (copy && (!wasSorted || sorted !== held)) setOwn(copy, name, sorted);
  }
  return copy ?? value;
}

function sortElements(values: readonly unknown[]): unknown {
  let copy: unknown[] | undefined;
  for (const [index, held] of values.entries()) {
    const sorted = sortMembers(held);
    if (sorted === HAS_OWN_JSON) return HAS_OWN_JSON;
    if (sorted !== held) (copy ??= [...values])[index] = sorted;
  }
  return copy ?? values;
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

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** The same value with a replacement character for every lone surrogate. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return Buffer.from(value, 'utf8').toString('utf8');
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, held]) => [wellFormed(name) as string, wellFormed(held)]),
  );
}

/** How records name the row that a call writes: by its id, by a keyed digest of class and id, or not. */
export type RecordedObjects = 'id' | 'digest' | 'none';

/**
 * A keyed digest that shows whether two calls had the same arguments. Arguments are often short and guessable, so a
 * plain hash could be reversed by trying values.
 */
export class ArgumentDigest {
  /** Prefix of the digests: only digests of the same key can be compared. */
  private readonly name: string;
  /** Imported once; otherwise every digest would import the key again. */
  private readonly key: KeyObject;

  /** @param objects how records name the row that a call writes */
  constructor(
    key: Buffer | string,
    private readonly objects: RecordedObjects = 'digest',
  ) {
    this.key = createSecretKey(Buffer.from(key));
    this.name = createHmac('sha256', this.key).update('parley argument digest').digest('hex').slice(0, 8);
  }

  of(tool: string, args: unknown): string {
    let text: string;
    try {
      text = canonicalLine(args ?? null);
    } catch {
      // Nested too deeply to be serialised, and therefore for any tool.
      text = 'unreadable';
    }
    const digest = createHmac('sha256', this.key).update(`${tool}\n${text}`).digest('hex');
    return `${this.name}:${digest.slice(0, 32)}`;
  }

  /** The member of a record that names the row that its call writes; none without a row. */
  nameObject(
    className: string | undefined,
    id: string | undefined,
  ): { readonly object_id?: string; readonly object_digest?: string } {
    if (id === undefined || this.objects === 'none') return {};
    return this.objects === 'id'
      ? { object_id: id }
      : { object_digest: this.of('object', [className ?? null, id]) };
  }
}
