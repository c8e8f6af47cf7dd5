import { isDocument } from '../bson/document.js';
import { mongoError } from '../errors.js';

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
      throw mongoError(
        146,
        `${this.name} used too much memory and cannot use the disk. Memory limit: ${MOST_BYTES} bytes`,
      );
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
