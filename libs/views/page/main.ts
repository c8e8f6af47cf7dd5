import { chartOf } from './chart.js';
import { element } from './element.js';
import { Host, type HostContext } from './host.js';
import { dataOf, readResult, type ResultTable } from './result-table.js';
import { tableOf } from './table.js';

const VARIABLE = /^--[a-z0-9-]{1,60}$/;

const view = document.querySelector('#view') as HTMLElement;

function show(...parts: Element[]): void {
  view.removeAttribute('aria-busy');
  view.replaceChildren(...parts);
}

function showResult(result: unknown): void {
  const data = dataOf(result);
  const table = data && readResult(data);
  if (table) showTable(table);
  else show(element('p', { class: 'note' }, 'This result is best read as text.'));
}

function showTable(table: ResultTable): void {
  const header = element('header');
  const place = element('section');
  header.append(element('h1', {}, table.title), element('p', { class: 'note' }, table.note));
  const { chart } = table;
  if (!chart) place.append(tableOf(table));
  else {
    const nav = element('nav', { 'aria-label': 'How it is shown' });
    const choose = (chosen: 'chart' | 'table') => {
      for (const button of buttons)
        button.setAttribute('aria-pressed', String(button.dataset['shows'] === chosen));
      place.replaceChildren(
        chosen === 'chart' ? chartOf(chart, table.title, view.clientWidth) : tableOf(table),
      );
    };
    const buttons = (['chart', 'table'] as const).map((shows) => {
      const button = element(
        'button',
        { type: 'button', 'data-shows': shows },
        shows === 'chart' ? 'Chart' : 'Table',
      );
      button.addEventListener('click', () => choose(shows));
      return button;
    });
    nav.append(...buttons);
    header.append(nav);
    choose('chart');
  }
  show(header, place);
}

/** Applies the host's colours and fonts, under the names of the specification. */
function dress({ theme, styles }: HostContext): void {
  const root = document.documentElement;
  if (theme === 'light' || theme === 'dark') root.style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {}))
    if (VARIABLE.test(name) && typeof value === 'string') root.style.setProperty(name, value);
}

const host = new Host()
  .on('ui/notifications/tool-result', showResult)
  .on('ui/notifications/tool-cancelled', () =>
    show(element('p', { class: 'note' }, 'The call was cancelled.')),
  )
  .on('ui/notifications/host-context-changed', (context) => dress((context ?? {}) as HostContext));

dress(await host.open('parley-results'));
new ResizeObserver(() => {
  const { width, height } = document.documentElement.getBoundingClientRect();
  host.say('ui/notifications/size-changed', { width: Math.ceil(width), height: Math.ceil(height) });
}).observe(document.body);
