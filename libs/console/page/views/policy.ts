import { el, fill, heading, put } from '../dom.js';
import { ask } from '../server.js';
import { facts, names, table } from '../table.js';
import { shownError } from '../shown-error.js';
import type { View } from '../view.js';

interface ShownClass {
  readonly name: string;
  readonly access: 'open' | 'hidden';
  readonly description: string | null;
  readonly fields: readonly string[] | null;
  readonly join_fields: readonly string[] | null;
  readonly large_fields: readonly string[];
  readonly canonical_filter: readonly string[];
  readonly tenant_field: string | null;
}
interface PolicyPage {
  readonly version: string;
  readonly total: number;
  readonly classes: readonly ShownClass[];
  readonly next: string | null;
}
interface Metadata {
  readonly classes_audited: number;
  readonly missing_class_descriptions: readonly string[];
  readonly missing_field_descriptions: Readonly<Record<string, readonly string[]>>;
  readonly unresolvable_allowlist_entries: Readonly<Record<string, readonly string[]>>;
}

/** What the policy says of each class, and what agents are not told about them. */
export function policyView(): View {
  return {
    name: 'policy',
    title: 'Policy',
    async show(root, signal) {
      const list = el('div', { class: 'classes' });
      const state = el('p', { class: 'quiet' }, 'asking…');
      const metadata = el('div', {});
      fill(root, heading('Policy'), state, list, el('h2', {}, 'What agents are not told'), metadata);
      const load = async (after: string) => {
        const page = await ask<PolicyPage>(`api/policy?after=${encodeURIComponent(after)}`, signal);
        fill(state, `Version ${page.version} · ${page.total} classes with rules of their own`);
        put(list, ...page.classes.map(classItem));
        if (page.next === null) return;
        const more = el('button', { type: 'button' }, 'More classes');
        more.addEventListener('click', () => {
          more.remove();
          load(page.next ?? '').catch((error: unknown) => put(list, shownError(error, signal)));
        });
        put(list, more);
      };
      try {
        await load('');
        fill(metadata, ...found(await ask<Metadata>('api/metadata', signal)));
      } catch (error) {
        fill(metadata, shownError(error, signal));
      }
    },
  };
}

function classItem(one: ShownClass): HTMLElement {
  const hidden = one.access === 'hidden';
  return el(
    'details',
    { class: 'class' },
    el(
      'summary',
      {},
      el('strong', {}, one.name),
      el('span', { class: `badge ${hidden ? 'bad' : 'good'}` }, one.access),
      el('span', { class: 'quiet' }, ` ${one.description ?? (hidden ? '' : 'no description')}`),
    ),
    facts([
      ['readable fields', one.fields === null ? 'all: no allowlist' : names(one.fields)],
      ['in joins', one.join_fields === null ? 'as above' : names(one.join_fields)],
      ['large fields', names(one.large_fields)],
      ['filter always applied on', names(one.canonical_filter)],
      ['tenant', one.tenant_field ?? 'not divided by tenant'],
    ]),
  );
}

function found(audit: Metadata): HTMLElement[] {
  const rows = [
    ...audit.missing_class_descriptions.map((name) => [name, 'has no description', ''] as const),
    ...Object.entries(audit.missing_field_descriptions).map(
      ([name, fields]) => [name, 'fields without description', names(fields)] as const,
    ),
    ...Object.entries(audit.unresolvable_allowlist_entries).map(
      ([name, fields]) => [name, 'allowed fields that the database has not', names(fields)] as const,
    ),
  ];
  const summary = el('p', { class: 'quiet' }, `${audit.classes_audited} classes looked at`);
  if (rows.length === 0) return [summary, el('p', {}, 'Everything is described.')];
  return [summary, table('What is missing', ['Class', 'What', 'Fields'], rows)];
}
