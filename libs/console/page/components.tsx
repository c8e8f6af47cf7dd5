import { cloneElement, type ComponentChildren, type InputHTMLAttributes, type VNode } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { exactTime, formatRecentTime, formatTime } from './formats.js';
import { type Answer, Busy, errorText, Refusal } from './server.js';
import { type SortKey, useSorting } from './sorting.js';

export type Kind = 'good' | 'bad' | 'busy' | 'plain';

const ICONS = {
  overview: 'M4 20V11M10 20V4M16 20v-6M21 20H3',
  approvals: 'M4 12.5l5 5L20 6.5',
  changes: 'M4 7h13l-3-3M20 17H7l3 3',
  live: 'M2 12h5l3-8 4 16 3-8h5',
  audit: 'M4 5h16M4 10h16M4 15h8M15.5 14a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 19l3 3',
  policy: 'M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z',
  explain: 'M5 5v6a4 4 0 0 0 4 4h10M15 11l4 4-4 4',
  work: 'M12 3l9 5-9 5-9-5zM3 13l9 5 9-5',
  health: 'M4 13h4l2-4 3 8 2-4h5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  light:
    'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2',
  dark: 'M20 14a8 8 0 1 1-10-10 6.5 6.5 0 0 0 10 10z',
  system: 'M3 5h18v11H3zM9 20h6M12 16v4',
  keys: 'M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8',
  leave: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  more: 'M8 5l7 7-7 7',
} as const;

export type IconName = keyof typeof ICONS;

/** A drawing beside a text that says the same. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={ICONS[name]} />
    </svg>
  );
}

/** The heading of a page, which gets the focus when the page is opened. */
export function Heading({ children, aside }: { children: string; aside?: ComponentChildren }) {
  return (
    <div class="title">
      <h1 tabIndex={-1}>{children}</h1>
      {aside}
    </div>
  );
}

export function Notice({ kind = 'plain', children }: { kind?: Kind; children: ComponentChildren }) {
  return (
    <div class={`notice ${kind}`} role={kind === 'bad' ? 'alert' : undefined}>
      {children}
    </div>
  );
}

/** A word at its beginning with a capital; a name of the configuration stays as it is. */
const startSentence = (text: string) =>
  /^[a-z]+[ :,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;

/** @param retry asks once more; offered where another attempt may succeed */
export function Failure({
  error,
  retry,
}: {
  readonly error: unknown;
  readonly retry?: (() => void) | undefined;
}) {
  const said = error === null || error === undefined ? null : errorText(error);
  if (said === null) return null;
  const text = startSentence(said);
  const isPassing = error instanceof Refusal && (error.status === 0 || error.status >= 500);
  if (!isPassing || !retry) return <Notice kind="bad">{text}</Notice>;
  return (
    <div class={`notice ${error instanceof Busy ? 'busy' : 'bad'}`} role="alert">
      {text}
      <p class="buttons">
        <button type="button" onClick={retry}>
          Try again
        </button>
      </p>
    </div>
  );
}

/** What an answer is shown as; until it is there, that it is loading; an error above the last answer. */
export function Loaded<T>({ of, children }: { of: Answer<T>; children: (value: T) => ComponentChildren }) {
  return (
    <>
      <Failure error={of.error} retry={of.reload} />
      {of.value === undefined ? of.error ? null : <p class="quiet">Loading…</p> : children(of.value)}
    </>
  );
}

export function Badge({ kind = 'plain', children }: { kind?: Kind; children: ComponentChildren }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

/** @param recent leaves the date of today to the title, where many times stand below each other */
export function Time({ iso, recent = false }: { readonly iso: string; readonly recent?: boolean }) {
  return (
    <time dateTime={iso} title={exactTime(iso)}>
      {recent ? formatRecentTime(iso) : formatTime(iso)}
    </time>
  );
}

/** An input with its label, and what to write into it. */
export function Field(props: { label: string; hint?: string | undefined; wide?: boolean; children: VNode }) {
  const id = useId();
  const { label, hint, wide, children } = props;
  const control = cloneElement(children, {
    id,
    ...(hint !== undefined && { 'aria-describedby': `${id}-hint` }),
  });
  return (
    <div class={wide ? 'field wide' : 'field'}>
      <label htmlFor={id}>{label}</label>
      {control}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

type TextFieldProps = InputHTMLAttributes<HTMLInputElement> & {
  readonly label: string;
  readonly hint?: string | undefined;
};

/** An input for one line that no browser completes or corrects. All but label and hint is of the input. */
export function TextField({ label, hint, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      <input type="text" autoComplete="off" spellcheck={false} {...input} />
    </Field>
  );
}

/** What inputs suggest whose `list` this is. */
export function Suggestions({ id, texts }: { readonly id: string; readonly texts: readonly string[] }) {
  return (
    <datalist id={id}>
      {texts.map((text) => (
        <option key={text} value={text} />
      ))}
    </datalist>
  );
}

type Option = readonly [value: string, text: string];

export function Select(props: {
  label: string;
  value: string;
  options: readonly Option[];
  change: (value: string) => void;
  hint?: string;
}) {
  const { label, value, options, change, hint } = props;
  return (
    <Field label={label} hint={hint}>
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key} selected={key === value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ pairs }: { readonly pairs: readonly Fact[] }) {
  return (
    <dl class="facts">
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * A table that is laid out as cards where the screen is narrow. Its roles are written out, because browsers drop those of
 * a table with another layout.
 */
export function Table(props: {
  caption: string;
  kind?: string;
  columns: readonly string[];
  isFigure?: (column: string) => boolean;
  /** Default: it is not sorted. */
  sorting?: Pick<ReturnType<typeof useSorting>, 'describeSort' | 'sortButton'> | undefined;
  children: ComponentChildren;
}) {
  const { caption, kind, columns, isFigure, sorting, children } = props;
  return (
    <div class="table-frame">
      <table role="table" class={kind}>
        <caption class="unseen">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((name) => (
              <th
                key={name}
                scope="col"
                role="columnheader"
                class={isFigure?.(name) ? 'figure' : undefined}
                aria-sort={sorting?.describeSort(name)}
              >
                {sorting?.sortButton(name) ?? name}
              </th>
            ))}
          </tr>
        </thead>
        {children}
      </table>
    </div>
  );
}

/** Rows of cells. */
export function DataTable(props: {
  caption: string;
  columns: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
  /** Numbers of columns with figures. */
  figures?: readonly number[];
  /** By what rows are sorted in each column. Default: they stay as they are. */
  sortKeys?: readonly (readonly SortKey[])[];
}) {
  const { caption, columns, figures = [], sortKeys } = props;
  const numbered = props.rows.map((cells, at) => ({ cells, at }));
  const sorting = useSorting(numbered, ({ at }, column) => sortKeys?.[at]?.[columns.indexOf(column)] ?? '');
  return (
    <Table
      caption={caption}
      columns={columns}
      isFigure={(column) => figures.includes(columns.indexOf(column))}
      sorting={sortKeys && sorting}
    >
      <tbody role="rowgroup">
        {sorting.sorted.map(({ cells, at: row }) => (
          <tr key={row} role="row">
            {cells.map((cell, at) => (
              <td
                key={at}
                role="cell"
                data-label={columns[at]}
                class={figures.includes(at) ? 'figure' : undefined}
              >
                <span>{cell}</span>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** A modal dialog; Escape and its button close it. */
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={props.close}>
      <h2 id={id}>{props.title}</h2>
      {props.children}
      <form method="dialog" class="buttons">
        <button type="submit" class="main">
          Close
        </button>
      </form>
    </dialog>
  );
}

/** Says something to screen readers without moving the focus. */
export function announce(text: string): void {
  const region = document.getElementById('announced');
  if (region) region.textContent = text;
}
