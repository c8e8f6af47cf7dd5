import { element } from './element.js';
import { MAX_COLUMNS, MAX_ROWS, type ResultTable } from './result-table.js';
import { compare, type ColumnFormat, type Formats, chooseFormat, visible } from './values.js';

/** Characters of a value on one line: ids, states, names. */
const SHORT_TEXT = 28;
/** Longer values are folded until the reader opens them. */
const LONG_TEXT = 120;

type Order = 'ascending' | 'descending';

/**
 * Rows under headers that sort them.
 * @param onSorted receives the rows in their new order
 */
export function createTable(
  { title, columns, rows, keyZone }: ResultTable,
  formats: Formats,
  onSorted: (rows: ResultTable['rows']) => void,
): HTMLElement {
  const table = element('table', { 'aria-label': title });
  const head = element('tr');
  const body = element('tbody');
  const shownColumns = columns.slice(0, MAX_COLUMNS);
  const kinds = shownColumns.map((_, at) => chooseFormat(rows.map((row) => row[at])));
  const cells = shownColumns.map((column, at) => {
    const cell = element('th', {
      scope: 'col',
      class: kinds[at] === 'number' || kinds[at] === 'grouped' ? 'number' : '',
    });
    const button = element('button', { type: 'button' }, visible(column));
    button.addEventListener('click', () => sortBy(at));
    cell.append(button);
    return cell;
  });

  function sortBy(at: number): void {
    const order: Order = cells[at]?.getAttribute('aria-sort') === 'ascending' ? 'descending' : 'ascending';
    for (const cell of cells) cell.removeAttribute('aria-sort');
    cells[at]?.setAttribute('aria-sort', order);
    const direction = order === 'ascending' ? 1 : -1;
    const sorted = [...rows].sort((a, b) => compare(a[at], b[at], direction));
    onSorted(sorted);
    fill(sorted);
  }

  function fill(sorted: ResultTable['rows']): void {
    body.replaceChildren(...sorted.slice(0, MAX_ROWS).map(createRow));
  }

  function createRow(values: readonly unknown[]): HTMLElement {
    const row = element('tr');
    const keyed = keyZone !== undefined && typeof values[0] === 'string';
    row.append(
      ...kinds.map((kind, at) =>
        at === 0 && keyed
          ? createCell(values[0], formats.key(values[0] as string), 'day')
          : createCell(values[at], formats.formatValue(values[at], kind), kind),
      ),
    );
    return row;
  }

  fill(rows);
  head.append(...cells);
  const heading = element('thead');
  heading.append(head);
  table.append(heading, body);
  const scroll = element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title });
  scroll.append(table);
  return scroll;
}

function createCell(value: unknown, text: string, kind: ColumnFormat): HTMLElement {
  if (value === null || value === undefined) return element('td', { class: 'nothing' }, text);
  if (typeof value === 'number') return element('td', { class: 'number', title: String(value) }, text);
  // The exact text of a date.
  if (kind !== 'value')
    return element(
      'td',
      { class: 'short', ...(typeof value === 'string' && { title: visible(value) }) },
      text,
    );
  if (text.length <= SHORT_TEXT) return element('td', { class: 'short' }, text);
  if (text.length <= LONG_TEXT) return element('td', { class: 'text' }, text);
  const cell = element('td', { class: 'text' });
  const folded = element('details');
  folded.append(element('summary', {}, text));
  cell.append(folded);
  return cell;
}
