import { el } from './dom.js';

type Cell = string | number | Node;

/**
 * A table that becomes a list of cards where there is no room. Roles are named, because browsers forget those of a table
 * that is laid out as something else.
 */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly Cell[])[],
): HTMLElement {
  const head = columns.map((name) => el('th', { scope: 'col', role: 'columnheader' }, name));
  const body = rows.map((cells) =>
    el(
      'tr',
      { role: 'row' },
      ...cells.map((cell, at) =>
        el('td', { role: 'cell', 'data-label': columns[at] ?? '' }, el('span', {}, cell)),
      ),
    ),
  );
  return el(
    'table',
    { role: 'table' },
    el('caption', { class: 'unseen' }, caption),
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...head)),
    el('tbody', { role: 'rowgroup' }, ...body),
  );
}

export function facts(pairs: readonly (readonly [name: string, value: Cell])[]): HTMLElement {
  return el(
    'dl',
    { class: 'facts' },
    ...pairs.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]),
  );
}

/** Names as a line; what there is none of is said. */
export function names(list: readonly string[] | null, none = 'none'): string {
  return list === null || list.length === 0 ? none : list.join(', ');
}
