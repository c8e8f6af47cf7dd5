import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ChainHead } from '../audit-record.js';
import { canonicalLine } from './canonical-json.js';

/** The `prev` of the first record of a chain. */
export const NOTHING_BEFORE = '';

/** A record with its hash. The hash covers all other members and, through `prev`, all records before it. */
export type SealedRecord = Readonly<Record<string, unknown>> & {
  /** Of one process, from its start to its end. */
  readonly chain: string;
  /** Place in the chain, from 0. */
  readonly seq: number;
  /** The `hash` of the record before. */
  readonly prev: string;
  /** ISO 8601. */
  readonly at: string;
  /** What kind of record it is. */
  readonly type: string;
  /** Over everything else in the record. */
  readonly hash: string;
};

/** A sealed record and its serialised line. */
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
    const sealed = this.hashOf(text);
    return { record: { ...record, hash: sealed } as SealedRecord, line: lineOf(text, sealed) };
  }

  /** @param line the text as it was read: the same value could be written in another way */
  holds({ hash: sealed, ...record }: SealedRecord, line?: string): boolean {
    const text = canonicalLine(record);
    const expected = Buffer.from(this.hashOf(text));
    const given = Buffer.from(sealed);
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) return false;
    return line === undefined || line === lineOf(text, sealed);
  }

  private hashOf(text: string): string {
    if (this.key === null) return hash('sha256', text);
    return createHmac('sha256', this.key).update(text).digest('hex');
  }
}

function lineOf(text: string, sealed: string): string {
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
