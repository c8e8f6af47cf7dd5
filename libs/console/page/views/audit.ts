import { announce, el, field, fill, heading, put } from '../dom.js';
import { type ConsoleRecord, recordItem } from '../record-list.js';
import { ask } from '../server.js';
import { shownError } from '../shown-error.js';
import type { View } from '../view.js';

interface Page {
  readonly reach: 'recent' | 'kept';
  readonly entries: readonly ConsoleRecord[];
  readonly cursor: string | null;
}

const FILTERS = [
  ['agent', 'Agent'],
  ['tool', 'Tool'],
  ['principal', 'Principal'],
  ['tenant', 'Tenant'],
  ['gate', 'Gate'],
  ['code', 'Code'],
  ['correlation_id', 'Correlation id'],
  ['from', 'From'],
  ['to', 'Until'],
] as const;
/** The others are there for whoever opens them. */
const USUAL: ReadonlySet<string> = new Set(['agent', 'tool']);
const TIMES: ReadonlySet<string> = new Set(['from', 'to']);

/** What was recorded, newest first. */
export function auditView(): View {
  return {
    name: 'audit',
    title: 'Audit',
    show(root, signal) {
      const inputs = FILTERS.map(([name, label]) => {
        const input = el('input', {
          name,
          type: TIMES.has(name) ? 'datetime-local' : 'text',
          autocomplete: 'off',
          spellcheck: 'false',
        });
        return { name, input, shown: field(label, input) };
      });
      const outcome = el(
        'select',
        {},
        el('option', { value: '' }, 'any'),
        el('option', { value: 'failure' }, 'refused or failed'),
        el('option', { value: 'success' }, 'success'),
      );
      const list = el('ol', { class: 'records', 'aria-label': 'Records, newest first' });
      const state = el('p', { class: 'quiet' });

      const asked = (cursor: string | null) => {
        const query = new URLSearchParams();
        for (const { name, input } of inputs) {
          const value = input.value.trim();
          if (value !== '') query.set(name, TIMES.has(name) ? new Date(value).toISOString() : value);
        }
        if (outcome.value !== '') query.set('outcome', outcome.value);
        if (cursor !== null) query.set('cursor', cursor);
        return query.toString();
      };
      const load = async (cursor: string | null) => {
        try {
          const page = await ask<Page>(`api/audit?${asked(cursor)}`, signal);
          if (cursor === null) fill(list);
          put(list, ...page.entries.map(recordItem));
          const reach = page.reach === 'recent' ? ' · of what this replica remembers' : '';
          const count = `${list.children.length} records${page.cursor === null ? '' : ', and more'}${reach}`;
          fill(state, count);
          if (cursor === null) announce(count);
          fill(
            more,
            page.cursor !== null &&
              el('button', { type: 'button', click: () => void load(page.cursor) }, 'More'),
          );
        } catch (error) {
          fill(state, shownError(error, signal));
        }
      };
      const more = el('p', {});
      const find = (event: Event) => {
        event.preventDefault();
        void load(null);
      };
      fill(
        root,
        heading('Audit'),
        el(
          'form',
          { class: 'panel grid', role: 'search', submit: find },
          ...inputs.filter(({ name }) => USUAL.has(name)).map(({ shown }) => shown),
          field('Outcome', outcome),
          el(
            'details',
            { class: 'wide' },
            el('summary', {}, 'More filters'),
            el(
              'div',
              { class: 'grid' },
              ...inputs.filter(({ name }) => !USUAL.has(name)).map(({ shown }) => shown),
            ),
          ),
          el('p', { class: 'buttons' }, el('button', { type: 'submit', class: 'main' }, 'Search')),
        ),
        state,
        list,
        more,
      );
      return load(null);
    },
  };
}
