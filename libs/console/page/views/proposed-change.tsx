import type { ApprovalView } from '#approvals';
import type { OperatorSet, ViewedEntry } from '#changes';
import type { ComponentChildren } from 'preact';
import { toAddress } from '../address.js';
import { DataTable, type Fact, Facts } from '../components.js';
import { formatCount, names, valueText } from '../formats.js';
import { describeSize, SetRows } from './set-rows.js';
import { StoredValue, Value } from './value.js';

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** The id of the row that would change. */
export function describeObject({ change }: Members): string {
  return isMembers(change) ? valueText(change['object_id']) : '';
}

/** Why approving takes a second step, and what the button of that step says; null where one step is enough. */
export function secondStep(
  { tool, permission, class_name }: ApprovalView,
  preview: Members,
): { readonly why: string; readonly does: string } | null {
  const { change } = preview;
  const className = class_name ?? findClass(preview) ?? '';
  if (tool === 'delete_object' || (isMembers(change) && change['operation'] === 'delete')) {
    const id = describeObject(preview);
    const row = `${id === '' ? 'a row' : id} of ${className}`;
    const why = id === '' ? `This deletes ${row}.` : `This deletes the row ${row}.`;
    return { why, does: `Delete ${row}` };
  }
  if (isWholeSet(preview) && preview.rows.deleted > 0) {
    const deleted = formatCount(preview.rows.deleted, 'row');
    return { why: `This deletes ${deleted}.`, does: `Apply all of it, and delete ${deleted}` };
  }
  const on = className && ` on ${className}`;
  if ('preview_error' in preview)
    return { why: `The change is not shown: ${tool} would run${on} unseen.`, does: `Run ${tool}${on}` };
  if (permission === 'admin')
    return { why: `This is a call of the admin tier: ${tool}${on}.`, does: `Run ${tool}${on}` };
  return null;
}

/** What a call would do that applies a change set, or takes one back. */
interface WholeSet extends Members {
  readonly rows: OperatorSet['rows'];
  readonly changes: readonly ViewedEntry[];
}

const isWholeSet = (preview: Members): preview is WholeSet =>
  isMembers(preview['rows']) && Array.isArray(preview['changes']);

/** The class that the call is about, as the preview names it. */
export function findClass(preview: Members): string | null {
  for (const held of [preview['change'], preview['args'], preview]) {
    const name = isMembers(held) ? (held['class_name'] ?? held['class']) : undefined;
    if (typeof name === 'string') return name;
  }
  return null;
}

/** What the call would change, field by field: all of it in view, nothing to be scrolled by itself. */
export function Change({ tool, preview }: { readonly tool: string; readonly preview: Members }) {
  if (isWholeSet(preview)) return <Whole set={preview} />;
  const { change, args, result, tool: _tool, permission: _permission, ...others } = preview;
  const facts: Fact[] = [];
  let table: ComponentChildren = null;
  if (isMembers(change)) {
    const { before, now, after, operation, class_name: _class, object_id: _object, ...rest } = change;
    const old = isMembers(before) ? { ...before, ...(isMembers(now) && now) } : null;
    const next = isMembers(after) ? after : null;
    if (isMembers(now)) facts.push(['not as the caller found it', Object.keys(now).join(', ')]);
    facts.push(...listRest(rest));
    const fields = [...new Set([...Object.keys(old ?? {}), ...Object.keys(next ?? {})])];
    const columns = ['Field', ...(operation === 'create' ? [] : ['Now']), ...(next ? ['After'] : [])];
    table =
      fields.length > 0 ? (
        <DataTable
          caption={`What ${tool} would change`}
          columns={columns}
          rows={fields.map((name) => [
            <strong>{name}</strong>,
            ...(operation === 'create' ? [] : [<StoredValue of={old?.[name]} />]),
            ...(next
              ? [
                  <span class={JSON.stringify(old?.[name]) === JSON.stringify(next[name]) ? '' : 'changed'}>
                    <Value of={next[name]} />
                  </span>,
                ]
              : []),
          ])}
        />
      ) : null;
    if (operation === 'delete') facts.unshift(['operation', 'the row is deleted']);
  } else if (isMembers(args) && Object.keys(args).length > 0) {
    table = (
      <DataTable
        caption={`Arguments of ${tool}`}
        columns={['Argument', 'Value']}
        rows={Object.entries(args).map(([name, value]) => [<strong>{name}</strong>, <Value of={value} />])}
      />
    );
  }
  facts.push(...listRest(others));
  return (
    <>
      {facts.length > 0 && <Facts pairs={facts} />}
      {table}
      {result !== undefined && (
        <>
          <p class="label">A dry run returned</p>
          <pre aria-label={`Dry run of ${tool}`}>{JSON.stringify(result, null, 2)}</pre>
        </>
      )}
    </>
  );
}

/** A whole change set: why, how much, and every row. */
function Whole({ set }: { readonly set: WholeSet }) {
  const { rows, changes, tool: _tool, kind: _kind, change_set: id, ...others } = set;
  const link = <a href={toAddress('changes', { set: valueText(id) })}>{valueText(id)}</a>;
  return (
    <>
      <Facts pairs={[['size', describeSize(rows)], ['change set', link], ...listRest(others)]} />
      <SetRows entries={changes} />
    </>
  );
}

/** The same as a program reads it. */
export function PreviewAsJson({ tool, preview }: { readonly tool: string; readonly preview: Members }) {
  return (
    <details>
      <summary>As JSON</summary>
      <pre tabIndex={0} aria-label={`What ${tool} would do, as JSON`}>
        {JSON.stringify(preview, null, 2)}
      </pre>
    </details>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  withheld: 'not shown: credentials',
  withheld_from_you: 'not shown: you may not read',
  preview_error: 'no preview',
};

function listRest(members: Members): Fact[] {
  return Object.entries(members).map(([name, value]) => [
    LABELS[name] ?? name,
    Array.isArray(value) && value.every((one) => typeof one === 'string') ? (
      names(value)
    ) : (
      <Value of={value} />
    ),
  ]);
}
