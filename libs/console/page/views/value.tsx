import type { ComponentChildren } from 'preact';

/** Characters of JSON that are shown in one line. */
const MOST_OF_LINE = 40;

/** A value of a row; nothing at all is shown as a dash, an empty text as what it is. */
export function Value({ of }: { readonly of: unknown }): ComponentChildren {
  if (of === undefined) return <span class="quiet">–</span>;
  if (of === null) return <span class="quiet">null</span>;
  if (typeof of === 'string' && of !== '') return <span class="value">{of}</span>;
  const time = readTime(of);
  if (time !== null) return <span class="value">{time}</span>;
  const pointer = readPointer(of);
  if (pointer !== null) return <code class="value">{pointer}</code>;
  const line = JSON.stringify(of);
  return <code class="value">{line.length > MOST_OF_LINE ? JSON.stringify(of, null, 1) : line}</code>;
}

/** A value as the database has it: in the place of what the operator may not see is its class. */
export function StoredValue({ of }: { readonly of: unknown }) {
  const { className, __redacted: redacted, ...others } = toMembers(of);
  if (redacted !== true || Object.keys(others).length > 0) return <Value of={of} />;
  return <em class="quiet">{typeof className === 'string' ? `${className}, hidden` : 'hidden'}</em>;
}

const toMembers = (value: unknown): Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' ? (value as Readonly<Record<string, unknown>>) : {};

function readTime(value: unknown): string | null {
  const { __type: type, iso, ...others } = toMembers(value);
  return type === 'Date' && Object.keys(others).length === 0 ? String(iso) : null;
}

function readPointer(value: unknown): string | null {
  const { __type: type, className, objectId, ...others } = toMembers(value);
  if (type !== 'Pointer' || Object.keys(others).length > 0) return null;
  return `${String(className)} ${String(objectId)}`;
}
