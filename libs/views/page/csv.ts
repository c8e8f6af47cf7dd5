import { withoutFormulas } from '../../tools/src/shaping/safe-text.js';
import { element } from './element.js';
import type { Host } from './host.js';
import { isRow } from './values.js';

const FILE_NAME = /[^A-Za-z0-9_-]+/g;

/** Rows as CSV (RFC 4180), values as the server wrote them. Text that a spreadsheet would run gets the prefix `'`. */
export function formatCsv(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [columns, ...rows].map((row) => `${row.map(formatCell).join(',')}\r\n`).join('');
}

function formatCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = typeof value === 'string' ? value : isDate(value) ? value.iso : JSON.stringify(value);
  const safe = withoutFormulas(text);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const isDate = (value: unknown): value is { iso: string } => isRow(value) && typeof value['iso'] === 'string';

/**
 * Gives the reader a file: by the host where it takes files, else by the browser. A sandbox may forbid the latter without
 * a word, so the text is offered to copy as well.
 * @returns what to show below the button
 */
export async function deliver(title: string, csv: string, host: Host): Promise<HTMLElement> {
  const name = `${
    title
      .replaceAll(FILE_NAME, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 60) || 'result'
  }.csv`;
  if (host.savesFiles) {
    const resource = { uri: `file:///${name}`, mimeType: 'text/csv', text: csv };
    const answer = await host.request('ui/download-file', { contents: [{ type: 'resource', resource }] });
    if (isRow(answer) && answer['isError'] !== true)
      return element('p', { class: 'note' }, `Saved as ${name}.`);
    return createCopy(csv, 'The host did not save the file.');
  }
  const address = URL.createObjectURL(new Blob([csv], { type: 'text/csv' }));
  element('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return createCopy(csv, `If no ${name} was saved, this host forbids it.`);
}

/** The text with a button, as a sandbox that forbids files may forbid the clipboard, too. */
function createCopy(csv: string, why: string): HTMLElement {
  const part = element('div', { class: 'copy' });
  const text = element('textarea', { readonly: '', rows: '5', 'aria-label': 'CSV' }) as HTMLTextAreaElement;
  text.value = csv;
  const said = element('p', { class: 'note', role: 'status' }, why);
  const button = element('button', { type: 'button' }, 'Copy');
  button.addEventListener('click', () => {
    text.select();
    // The newer interface needs a permission that a sandboxed frame seldom has.
    said.textContent = document.execCommand('copy')
      ? 'Copied.'
      : 'Press Ctrl+C or ⌘C to copy the selected text.';
  });
  part.append(said, button, text);
  return part;
}
