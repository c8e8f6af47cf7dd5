import type { ComponentChildren } from 'preact';

/** Characters of JSON that are shown in one line. */
const MOST_OF_LINE = 40;

/** A value of a row; nothing at all is shown as a dash, an empty text as what it is. */
export function Value({ of }: { readonly of: unknown }): ComponentChildren {
  if (of === undefined) return <span class="quiet">–</span>;
  if (of === null) return <span class="quiet">null</span>;
  if (typeof of === 'string' && of !== '') return <span class="value">{of}</span>;
  const reference = describeReference(of);
  if (reference !== null) return <code class="value">{reference}</code>;
  const line = JSON.stringify(of);
  return <code class="value">{line.length > MOST_OF_LINE ? JSON.stringify(of, null, 1) : line}</code>;
}

/** A pointer or a time in one word; null: it is neither. */
function describeReference(value: unknown): string | null {
  if (value === null || typeof value !== 'object') return null;
  const { __type: type, className, objectId, iso, ...others } = value as Readonly<Record<string, unknown>>;
  if (Object.keys(others).length > 0) return null;
  if (type === 'Pointer' && iso === undefined) return `${String(className)} ${String(objectId)}`;
  return type === 'Date' && className === undefined && objectId === undefined ? String(iso) : null;
}
