import { oneLine } from '#audit';

/** `1 fault`, `2 faults`. */
export const countOf = (count: number, word: string, several = `${word}s`): string =>
  `${count} ${count === 1 ? word : several}`;

/** Lines of text, each of which may contain untrusted text. */
export const textLines = (lines: readonly string[]): string =>
  lines.map((line) => `${oneLine(line)}\n`).join('');

/** Rows as aligned columns, the last one unpadded. Cells may contain untrusted text. */
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

/**
 * JSON that is safe for a terminal: characters that `JSON.stringify` keeps and a terminal interprets are escaped as in
 * JSON. It ends with the end of a line.
 */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => `${oneLine(line) === line ? line : line.replace(UNSAFE_CHARACTERS, escapeCharacter)}\n`)
    .join('');
}

/** Any character outside plain ASCII, on lines with unsafe text. */
const UNSAFE_CHARACTERS = /[^\x20-\x7e]/g;

const escapeCharacter = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
