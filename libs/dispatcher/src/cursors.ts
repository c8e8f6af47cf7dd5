import { invalidParams } from './protocol-fault.js';

/** Entries per page of a list; a catalogue up to this size comes whole. */
const PAGE_SIZE = 200;

export interface Page<T> {
  readonly entries: readonly T[];
  readonly nextCursor?: string;
}

function encode(list: string, offset: number): string {
  return Buffer.from(`${list} ${offset}`, 'utf8').toString('base64url');
}

/** Only a cursor that this list itself could have issued is accepted, so every replica understands every cursor. */
function offsetOf(list: string, cursor: unknown, total: number): number {
  if (cursor === undefined || cursor === null) return 0;
  for (let offset = PAGE_SIZE; offset < total; offset += PAGE_SIZE) {
    if (encode(list, offset) === cursor) return offset;
  }
  throw invalidParams('Invalid cursor');
}

/** @throws ProtocolFault -32602 for a cursor this list never issued */
export function pageOf<T>(list: string, all: readonly T[], cursor: unknown): Page<T> {
  const offset = offsetOf(list, cursor, all.length);
  const end = offset + PAGE_SIZE;
  if (offset === 0 && end >= all.length) return { entries: all };
  return {
    entries: all.slice(offset, end),
    ...(end < all.length && { nextCursor: encode(list, end) }),
  };
}
