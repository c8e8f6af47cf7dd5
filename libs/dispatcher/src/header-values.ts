const SENTINEL = '=?base64?';
const SENTINEL_END = '?=';
const CANONICAL_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const PLAIN_TEXT = /^[\x20-\x7e\t]*$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text a mirroring header carries, plain or as `=?base64?…?=`; `undefined` when it is neither. */
export function decodeHeaderValue(header: string): string | undefined {
  const value = header.trim();
  if (!value.startsWith(SENTINEL) || !value.endsWith(SENTINEL_END)) {
    return PLAIN_TEXT.test(value) ? value : undefined;
  }
  const encoded = value.slice(SENTINEL.length, -SENTINEL_END.length);
  if (!CANONICAL_BASE64.test(encoded)) return undefined;
  try {
    return utf8.decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}
