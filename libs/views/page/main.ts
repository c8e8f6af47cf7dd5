import { drawChart } from './chart.js';
import { formatCsv, deliver } from './csv.js';
import { element } from './element.js';
import { Host, type HostContext } from './host.js';
import {
  readData,
  type Failure,
  readableText,
  readFailure,
  readResult,
  type ResultTable,
} from './result-table.js';
import { createTable } from './table.js';
import { Formats, chooseFormat, visible } from './values.js';

const VARIABLE = /^--[a-z0-9-]{1,60}$/;
/** Pixels of the page beside the rows, and the height of rows that is never undercut. */
const BESIDE_ROWS = 120;
const MIN_HEIGHT = 160;

const view = document.querySelector('#view') as HTMLElement;
let formats = new Formats();
/** Draws what is shown again. */
let redraw = (): void => {};

function show(...parts: Element[]): void {
  view.removeAttribute('aria-busy');
  view.replaceChildren(...parts);
}

const note = (text: string): HTMLElement => element('p', { class: 'note' }, text);

function showResult(result: unknown): void {
  const failure = readFailure(result);
  const data = readData(result);
  const table = failure || !data ? null : readResult(data);
  redraw = () => {};
  if (failure) showFailure(failure);
  else if (table) showTable(table);
  else show(note('This result has no rows.'), element('pre', {}, visible(readableText(result))));
}

function showFailure({ message, code, advice, allowed }: Failure): void {
  const header = element('header');
  header.append(element('h1', {}, 'The call was refused'));
  if (code !== undefined) header.append(element('code', {}, visible(code)));
  const parts = [
    element('p', { class: 'message' }, visible(message)),
    ...advice.map((text) => element('p', {}, visible(text))),
  ];
  if (allowed.length > 0) {
    const names = element('p', { class: 'names' }, 'Allowed: ');
    names.append(...allowed.map((name) => element('code', {}, visible(name))));
    parts.push(names);
  }
  const alert = element('section', { class: 'failure', role: 'alert' });
  alert.append(header, ...parts);
  show(alert);
}

function showTable(table: ResultTable): void {
  const header = element('header');
  const place = element('section');
  const below = element('footer');
  const title = visible(table.title);
  const { chart, notes } = table;
  header.append(element('h1', {}, title), note(visible([...notes, ...(chart?.notes ?? [])].join(' · '))));
  const nav = element('nav', { 'aria-label': 'How it is shown' });
  let { rows } = table;
  let shown: 'chart' | 'table' = chart ? 'chart' : 'table';
  const buttons = (chart ? (['chart', 'table'] as const) : []).map((shows) => {
    const button = element('button', { type: 'button' }, shows === 'chart' ? 'Chart' : 'Table');
    button.addEventListener('click', () => {
      shown = shows;
      redraw();
    });
    return [shows, button] as const;
  });
  const file = element('button', { type: 'button' }, 'CSV');
  file.addEventListener('click', () => {
    void deliver(title, formatCsv(table.columns, rows), host).then((said) => below.replaceChildren(said));
  });
  if (rows.length === 0) return show(header);
  nav.append(...buttons.map(([, button]) => button), file);
  header.append(nav);
  redraw = () => {
    for (const [shows, button] of buttons) button.setAttribute('aria-pressed', String(shows === shown));
    place.replaceChildren(
      chart && shown === 'chart'
        ? drawChart(chart, title, formats, view.clientWidth)
        : createTable({ ...table, rows }, formats, (sorted) => {
            rows = sorted;
          }),
      ...listZones(table).map(note),
    );
  };
  show(header, place, below);
  redraw();
}

/** In which zones the times are. */
function listZones({ columns, rows, keyZone }: ResultTable): string[] {
  const kinds = new Set(columns.map((_, at) => chooseFormat(rows.map((row) => row[at]))));
  const moments = kinds.has('minute') || kinds.has('second') ? [`Times are in ${formats.timeZone}.`] : [];
  const days = kinds.has('day') ? ['Dates without a time are in UTC.'] : [];
  const keys = keyZone === undefined ? [] : [`Grouped by the calendar of ${visible(keyZone)}.`];
  const text = [...moments, ...days, ...keys].join(' ');
  return text === '' ? [] : [text];
}

/** Applies the host's colours, fonts, language and bounds, under the names of the specification. */
function dress({ theme, styles, locale, timeZone, containerDimensions: size }: HostContext): void {
  const root = document.documentElement;
  if (theme === 'light' || theme === 'dark') root.style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {}))
    if (VARIABLE.test(name) && typeof value === 'string') root.style.setProperty(name, value);
  const height = size?.height ?? size?.maxHeight;
  if (typeof height === 'number')
    root.style.setProperty('--rows', `${Math.max(MIN_HEIGHT, height - BESIDE_ROWS)}px`);
  if (locale !== undefined || timeZone !== undefined) {
    formats = new Formats(locale ?? formats.locale, timeZone ?? formats.timeZone);
    redraw();
  }
}

const host = new Host()
  .on('ui/notifications/tool-result', showResult)
  .on('ui/notifications/tool-cancelled', () => show(note('The call was cancelled.')))
  .on('ui/notifications/host-context-changed', (context) => dress((context ?? {}) as HostContext));

await host.open('parley-results', dress);
let width = view.clientWidth;
new ResizeObserver(() => {
  // A table fits by itself, and would lose its place.
  if (view.clientWidth !== width && view.querySelector('figure')) redraw();
  width = view.clientWidth;
  const box = document.documentElement.getBoundingClientRect();
  host.say('ui/notifications/size-changed', { width: Math.ceil(box.width), height: Math.ceil(box.height) });
}).observe(document.body);
