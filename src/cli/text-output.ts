import { oneLine } from '#audit';

/** Rows as aligned columns, the last one unpadded. Cells may hold text of strangers. */
export function textTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header, ...rows].map((row) => row.map(oneLine));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** JSON that no terminal obeys: what `JSON.stringify` leaves as it is and a terminal would not is escaped, as JSON escapes it. */
export function jsonText(value: unknown): string {
  const lines = JSON.stringify(value, null, 2).split('\n');
  return lines.map((line) => (oneLine(line) === line ? line : line.replace(UNSAFE, escaped))).join('\n');
}

/** Whatever is no plain ASCII, on lines that hold something unsafe. */
const UNSAFE = /[^\x20-\x7e]/g;

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
