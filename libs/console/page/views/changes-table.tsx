import type { PolicyChanges } from '../../src/controllers/explain.controller.js';
import { Badge, DataTable } from '../components.js';
import { names } from '../formats.js';

type Change = PolicyChanges['changes'][number];

/** Changes of one kind to several names of a class, as one row: a class that is lost takes all its tools and fields with it. */
function groupChanges(
  changes: readonly Change[],
): readonly (Change & { readonly names: readonly string[] })[] {
  const groups = new Map<string, Change & { readonly names: string[] }>();
  for (const change of changes) {
    const { agent, class_name: className, what, effect, before, after, widens } = change;
    const key = JSON.stringify([agent, className, what, effect, before, after, widens]);
    const known = groups.get(key);
    if (known) known.names.push(change.name);
    else groups.set(key, { ...change, names: [change.name] });
  }
  return [...groups.values()];
}

/** What agents gain and lose. Columns without content are left out. */
export function ChangesTable({ caption, changes }: { caption: string; changes: readonly Change[] }) {
  const columns = ['Agent', 'Class', 'What', 'Name', 'Change', 'Before', 'After'];
  const rows = groupChanges(changes).map((change) => [
    change.agent,
    change.class_name ?? '',
    change.what,
    names(change.names),
    <Badge kind={change.widens ? 'busy' : 'plain'}>{change.effect}</Badge>,
    change.before ?? '',
    change.after ?? '',
  ]);
  const hasContent = (_: unknown, at: number) => rows.some((cells) => cells[at] !== '');
  return (
    <div class="changes">
      <DataTable
        caption={caption}
        columns={columns.filter(hasContent)}
        rows={rows.map((cells) => cells.filter(hasContent))}
      />
    </div>
  );
}
