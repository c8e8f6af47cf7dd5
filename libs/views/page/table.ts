import { compare, type ResultTable, shown } from './result-table.js';
import { element } from './element.js';

/** Maximum characters of a value on one line: dates, ids, states. */
const SHORT = 26;

type Order = 'ascending' | 'descending';

/** Rows under headers that sort them. */
export function tableOf({ title, columns, rows }: ResultTable): HTMLElement {
  const table = element('table', { 'aria-label': title });
  const head = element('tr');
  const body = element('tbody');
  const cells = columns.map((column, at) => {
    const cell = element('th', { scope: 'col' });
    const button = element('button', { type: 'button' }, column);
    button.addEventListener('click', () => sortBy(at));
    cell.append(button);
    return cell;
  });

  function sortBy(at: number): void {
    const order: Order = cells[at]?.getAttribute('aria-sort') === 'ascending' ? 'descending' : 'ascending';
    for (const cell of cells) cell.removeAttribute('aria-sort');
    cells[at]?.setAttribute('aria-sort', order);
    const direction = order === 'ascending' ? 1 : -1;
    fill([...rows].sort((a, b) => compare(a[at], b[at], direction)));
  }

  function fill(sorted: ResultTable['rows']): void {
    body.replaceChildren(...sorted.map((row) => rowOf(row)));
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

function rowOf(values: readonly unknown[]): HTMLElement {
  const row = element('tr');
  row.append(...values.map((value) => element('td', { class: kindOf(value) }, shown(value))));
  return row;
}

function kindOf(value: unknown): string {
  if (typeof value === 'number') return 'number';
  if (value === null || value === undefined) return 'nothing';
  return typeof value === 'string' && value.length <= SHORT ? 'short' : 'text';
}
