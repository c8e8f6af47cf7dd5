import { oneLine } from '#audit';

/** JSON that no terminal obeys: what `JSON.stringify` leaves as it is and a terminal would not is escaped, as JSON escapes it. */
export function jsonText(value: unknown): string {
  const lines = JSON.stringify(value, null, 2).split('\n');
  return lines.map((line) => (oneLine(line) === line ? line : line.replace(UNSAFE, escaped))).join('\n');
}

/** Whatever is no plain ASCII, on lines that hold something unsafe. */
const UNSAFE = /[^\x20-\x7e]/g;

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
