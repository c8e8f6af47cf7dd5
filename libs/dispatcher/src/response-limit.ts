/** Bytes of text one answer may hold. */
export const MAX_RESPONSE_BYTES = 4_194_304;

export function exceedsResponseLimit(text: string): boolean {
  // A UTF-16 unit is at most three bytes of UTF-8, so short texts need no counting.
  return text.length * 3 > MAX_RESPONSE_BYTES && Buffer.byteLength(text, 'utf8') > MAX_RESPONSE_BYTES;
}
