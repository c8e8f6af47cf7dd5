import { isDocument } from '../bson/document.js';
import { mongoError } from '../errors.js';
import { MAX_DOCUMENT_BYTES } from '../wire/raw-bson.js';

/** Bytes that one stage of a pipeline may hold, as MongoDB has it for stages that may not use the disk. */
const MOST_BYTES = 100 * 1024 * 1024;
/** What a value without a length of its own takes, roughly. */
const VALUE_BYTES = 16;

/** What a stage keeps of its input. Values that documents share are counted wherever they stand. */
export class StageMemory {
  private bytes = 0;

  constructor(private readonly name: string) {}

  /** Errors: 146 when the stage holds more than 100 MB. */
  hold(value: unknown): void {
    this.bytes += countBytes(value, MOST_BYTES);
    if (this.bytes > MOST_BYTES)
      throw mongoError(146, `${this.name} needs more memory than ${MOST_BYTES} bytes`);
  }
}

/** @param most where counting ends */
export function countBytes(value: unknown, most: number): number {
  if (typeof value === 'string') return VALUE_BYTES + value.length;
  let bytes = VALUE_BYTES;
  if (typeof value !== 'object' || value === null) return bytes;
  if (ArrayBuffer.isView(value)) return bytes + value.byteLength;
  const members = Array.isArray(value) ? value : isDocument(value) ? Object.values(value) : [];
  for (const member of members) {
    if (bytes > most) return bytes;
    bytes += countBytes(member, most - bytes);
  }
  return bytes;
}

/** Values in one value, those inside it included; no stored document comes near. */
const MOST_VALUES = 4_000_000;

/** Values that are counted again each time: remembering them would cost more. */
const MIN_KEPT_WEIGHT = 16;

/** Counted once per object: a value that holds another many times over is heavy without being large in memory. */
const weights = new WeakMap<object, number>();

/** Errors: 16493 for a text that no document could hold. @param least bytes that it has at least */
export function checkText(least: number): void {
  if (least >= MAX_DOCUMENT_BYTES)
    throw mongoError(16493, `an expression would make a text of ${MAX_DOCUMENT_BYTES} bytes or more`);
}

/**
 * The value of an expression, when comparing or encoding it can come to an end. Forty doublings of a list share their
 * halves and fit in memory, yet nobody could walk them. Errors: 146, 16493.
 */
export function checkBound(value: unknown): unknown {
  if (typeof value === 'string' && 3 * value.length >= MAX_DOCUMENT_BYTES)
    checkText(Buffer.byteLength(value));
  if (typeof value === 'object' && value !== null) weigh(value);
  return value;
}

function weigh(value: object): number {
  const known = weights.get(value);
  if (known !== undefined) return known;
  const members = Array.isArray(value) ? value : isDocument(value) ? Object.values(value) : [];
  let weight = 1;
  for (const member of members) {
    weight += typeof member === 'object' && member !== null ? weigh(member) : 1;
    if (weight > MOST_VALUES)
      throw mongoError(146, `an expression made a value of over ${MOST_VALUES} values`);
  }
  if (weight > MIN_KEPT_WEIGHT) weights.set(value, weight);
  return weight;
}
