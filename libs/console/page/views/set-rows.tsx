import type { OperatorSet, ViewedEntry } from '#changes';
import type { ComponentChildren } from 'preact';
import { Badge, type Kind, Table } from '../components.js';
import { formatCount } from '../formats.js';
import { StoredValue, Value } from './value.js';

const OPERATIONS: Readonly<Record<ViewedEntry['operation'], readonly [word: string, kind: Kind]>> = {
  create: ['created', 'good'],
  update: ['changed', 'busy'],
  delete: ['deleted', 'bad'],
};

/** `31 rows: 2 created, 27 changed, 2 deleted`, `1 row changed` */
export function describeSize(rows: OperatorSet['rows']): string {
  const kinds = Object.entries(rows).filter(([, count]) => count > 0);
  const all = kinds.reduce((sum, [, count]) => sum + count, 0);
  const counted = formatCount(all, 'row');
  if (kinds.length === 1) return `${counted} ${kinds[0]?.[0]}`;
  return [counted, ...(all > 0 ? [kinds.map(([kind, count]) => `${count} ${kind}`).join(', ')] : [])].join(
    ': ',
  );
}

/** Rows by their class, in the order in which they come; last those whose class is hidden. */
export function groupByClass(
  entries: readonly ViewedEntry[],
): readonly (readonly [className: string | null, rows: readonly ViewedEntry[]])[] {
  const groups = new Map<string | null, ViewedEntry[]>();
  for (const entry of entries) {
    const name = entry.class_name ?? null;
    groups.set(name, [...(groups.get(name) ?? []), entry]);
  }
  return [...groups].sort(([one], [other]) => Number(one === null) - Number(other === null));
}

/** Every row of a set, before and after side by side, by class. All of it is in view: nothing is scrolled by itself. */
export function SetRows({ entries }: { readonly entries: readonly ViewedEntry[] }) {
  return (
    <>
      {groupByClass(entries).map(([className, rows]) => (
        <section key={className} class="set-class">
          <h3>
            {className === null ? 'Hidden from you' : <span class="class-name">{className}</span>}{' '}
            <span class="quiet">{describeSize(countOperations(rows))}</span>
          </h3>
          <Table
            caption={`Rows of ${className ?? 'hidden classes'}, before and after`}
            kind="set-rows"
            columns={['Field', 'Before', 'After']}
          >
            {rows.map((entry, at) => (
              <Row key={entry.entry ?? at} entry={entry} />
            ))}
          </Table>
        </section>
      ))}
    </>
  );
}

const HIDDEN = <em class="quiet">hidden</em>;

function Row({ entry }: { readonly entry: ViewedEntry }) {
  const { operation, object_id: id, before, after, hidden, withheld_from_you: withheld = [] } = entry;
  const { key_names: keys = [], undone_by: undoneBy } = entry;
  const [word, kind] = OPERATIONS[operation];
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const none = <span class="quiet">–</span>;
  const line = (name: string, old: ComponentChildren, next: ComponentChildren) => (
    <tr key={name} role="row">
      <td role="cell">
        <strong>{name}</strong>
      </td>
      <td role="cell" data-label="Before">
        <span>{old}</span>
      </td>
      <td role="cell" data-label="After">
        <span>{next}</span>
      </td>
    </tr>
  );
  return (
    <tbody role="rowgroup">
      <tr role="row" class="set-row">
        <th role="rowheader" scope="rowgroup" colSpan={3}>
          {hidden === undefined ? <code>{id ?? 'new'}</code> : 'A row'} <Badge kind={kind}>{word}</Badge>{' '}
          {hidden !== undefined && <em class="quiet">{hidden}</em>}{' '}
          {keys.length > 0 && <span class="quiet">by {keys.join(', ')}</span>}{' '}
          {undoneBy !== undefined && <Badge>undone</Badge>}
        </th>
      </tr>
      {names.map((name) => {
        const isChanged = JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]);
        return line(
          name,
          operation === 'create' ? none : <StoredValue of={before?.[name]} />,
          operation === 'delete' ? (
            none
          ) : (
            <span class={isChanged ? 'changed' : undefined}>
              <Value of={after?.[name]} />
            </span>
          ),
        );
      })}
      {withheld.map((name) => line(name, operation === 'create' ? none : HIDDEN, HIDDEN))}
    </tbody>
  );
}

const countOperations = (rows: readonly ViewedEntry[]): OperatorSet['rows'] => {
  const count = (operation: ViewedEntry['operation']) =>
    rows.filter((row) => row.operation === operation).length;
  return { created: count('create'), changed: count('update'), deleted: count('delete') };
};
