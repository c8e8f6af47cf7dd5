import type { ColumnOrigin } from './class-schema.js';

/** The columns of a class: its schema's fields. */
type Columns = Pick<ReadonlyMap<string, unknown>, 'has'>;

/**
 * Resolves written names to the columns of one class: the column of exactly that name; if there is none, the column that an
 * alias declares for it; then the column of its lowerCamel form. All code resolves names here.
 */
export class FieldNames {
  private readonly targets: ReadonlySet<string>;

  /** @param columns null: the class has no schema, and every name may be one of a column */
  constructor(
    private readonly aliases: ReadonlyMap<string, string> = new Map(),
    private readonly columns: Columns | null = null,
  ) {
    this.targets = new Set(aliases.values());
  }

  /** The column that a written name means; null when the class has none of that name. Without a schema never null. */
  column(name: string): string | null {
    const { columns } = this;
    if (columns === null) return this.likely(name);
    if (columns.has(name)) return name;
    const column = this.resolveAlias(name) ?? STORED_STAMPS.get(name) ?? toLowerCamel(name);
    return columns.has(column) ? column : null;
  }

  /** The column of a written name. A name without a column stays as written, or becomes its alias. */
  wireName(name: string): string {
    const column = this.column(name);
    if (column !== null) return column;
    // A pipeline calls the id so, which every document has.
    if (name !== '_id') this.noteMissing(name);
    return this.resolveAlias(name) ?? name;
  }

  /** The same for names that a caller did not ask a column by, as those that a stage introduces. */
  resolveColumn(name: string): string {
    return this.column(name) ?? this.resolveAlias(name) ?? name;
  }

  /** The wire name of a dotted path: only its root is the name of a column. */
  wirePath(path: string): string {
    const dot = path.indexOf('.');
    if (dot < 0) return this.wireName(path);
    return this.wireName(path.slice(0, dot)) + path.slice(dot);
  }

  /** A caller wrote a name that is no column, or is refused as one that is none. Default: nobody needs to know. */
  noteMissing(_written: string): void {}

  private resolveAlias(name: string): string | undefined {
    return this.aliases.get(name) ?? this.aliases.get(toLowerCamel(name));
  }

  /** Without a schema: the alias, else the lowerCamel form. */
  private likely(name: string): string {
    // The target of an alias keeps its own spelling.
    const column = this.resolveAlias(name) ?? STORED_STAMPS.get(name);
    return column ?? (this.targets.has(name) ? name : toLowerCamel(name));
  }
}

/** Time stamps as Parse stores them, which are named in databases and in dashboards. */
const STORED_STAMPS: ReadonlyMap<string, string> = new Map([
  ['_created_at', 'createdAt'],
  ['_updated_at', 'updatedAt'],
]);

/** Characters of a name that may be another spelling of a column. */
const LONGEST_SPELLING = 1_024;

export function toLowerCamel(name: string): string {
  // Called for every key of every row, hence no regular expression first.
  const first = name.charCodeAt(0);
  const isUpper = first >= 65 && first <= 90;
  if (name.length > LONGEST_SPELLING || name.startsWith('_') || !(isUpper || name.includes('_'))) return name;
  const camel = name.replace(/_+([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  return camel.charAt(0).toLowerCase() + camel.slice(1);
}

export function takeRoot(path: string): string {
  const dot = path.indexOf('.');
  return dot < 0 ? path : path.slice(0, dot);
}

/**
 * One name of a column that callers and configurations may write: a letter of any script, then anything that can be seen and means
 * nothing else (`$` begins operators, dots are in paths, commas in lists). Other stored names need an alias.
 */
export const FIELD_NAME = String.raw`\p{L}(?:[^\p{C}$.,]{0,126}[^\p{C}\p{Z}$.,])?`;
const ONE_NAME = new RegExp(`^${FIELD_NAME}$`, 'u');

export const isFieldName = (name: unknown): name is string =>
  typeof name === 'string' && name.length <= 128 && ONE_NAME.test(name);

/** Names with dots between them. */
export const isFieldPath = (path: unknown): path is string =>
  typeof path === 'string' && path.split('.').every(isFieldName);

/** A name that may be shown although only documents have it: one with blanks, or with what no display shows, could be text for a model. */
export const isPlainName = (name: string): boolean =>
  /^(?!\P{DI}*\p{DI})[\p{L}_][\p{L}\p{M}\p{N}_-]{0,127}$/u.test(name);

/**
 * Whether schemas, completions and refusals may name a column.
 * @param origin of the column in the schema. @param listed the columns that the policy lists
 */
export const isNameable = (
  name: string,
  origin: ColumnOrigin | undefined,
  listed: readonly string[] | null,
): boolean =>
  isPlainName(name) || listed?.includes(name) === true || origin === 'declared' || origin === 'validator';

const POINTER_PREFIX = '_p_';

/** The column of a name that may be a field or its storage column. */
export function logicalColumn(root: string): string {
  return root.startsWith(POINTER_PREFIX) ? root.slice(POINTER_PREFIX.length) : root;
}

export function toStoredPointerColumn(field: string): string {
  return POINTER_PREFIX + field;
}

/** Columns that hold secrets: never read, filtered, sorted, grouped or returned, for any agent. */
export const CREDENTIAL_FIELDS: readonly string[] = [
  '_hashed_password',
  '_password_history',
  '_password_changed_at',
  '_session_token',
  '_sessionToken',
  'sessionToken',
  'session_token',
  '_email_verify_token',
  '_email_verify_token_expires_at',
  '_perishable_token',
  '_perishable_token_expires_at',
  '_failed_login_count',
  '_account_lockout_expires_at',
  '_auth_data',
  'authData',
  'bcryptPassword',
];

/** Internal columns of Parse: credentials and row rights. */
export const INTERNAL_FIELDS: readonly string[] = [
  ...CREDENTIAL_FIELDS,
  'ACL',
  '_acl',
  '_rperm',
  '_wperm',
  '_tombstone',
];

/** One column per login provider: `_auth_data_facebook`, … Only on `_User`. */
export const AUTH_DATA_PREFIX = '_auth_data_';

const INTERNAL = new Set(INTERNAL_FIELDS);

/** Whether one segment of a path is internal, in any spelling that resolves to it. */
export function isInternalField(segment: string): boolean {
  return INTERNAL.has(segment) || segment.startsWith(AUTH_DATA_PREFIX) || INTERNAL.has(toLowerCamel(segment));
}

/** A dotted path is internal when any of its segments is: `user._hashed_password`, `_rperm.0`. */
export function hasInternalSegment(path: string): boolean {
  return path.includes('.') ? path.split('.').some(isInternalField) : isInternalField(path);
}

/**
 * Member names with a meaning of their own: JavaScript reads `__proto__` as the prototype of an object, the database driver
 * reads an object with `_bsontype` as a BSON value, including code.
 */
export const MAGIC_NAMES: ReadonlySet<string> = new Set(['__proto__', '_bsontype']);

export function hasMagicSegment(path: string): boolean {
  return path.includes('.')
    ? path.split('.').some((segment) => MAGIC_NAMES.has(segment))
    : MAGIC_NAMES.has(path);
}

interface ComparedName {
  readonly text: string;
  /** Which characters it has: a bit for each, which others may share. */
  readonly characters: number;
}

/** Candidates in that form: the same few hundred names are offered for every wrong one. */
const KNOWN_NAMES = 2_000;
const knownNames = new Map<string, ComparedName>();

/** Names are compared without case and separators: `className` is `class_name`, `User` is `_User`. */
function normalizeName(name: string): ComparedName {
  const text = name.toLowerCase().replaceAll(/[_-]/g, '');
  let characters = 0;
  for (let at = 0; at < text.length; at += 1) characters |= 1 << (text.charCodeAt(at) & 31);
  return { text, characters };
}

function countBits(set: number): number {
  let count = 0;
  for (let left = set; left !== 0; left &= left - 1) count += 1;
  return count;
}

/** Fewer edits do not make one name of the other: each removes or adds at most one character that only one of them has. */
function leastEdits(a: ComparedName, b: ComparedName): number {
  const byLength = Math.abs(a.text.length - b.text.length);
  return Math.max(byLength, countBits(a.characters & ~b.characters), countBits(b.characters & ~a.characters));
}

function normalizeCandidate(name: string): ComparedName {
  let other = knownNames.get(name);
  if (other === undefined) {
    if (knownNames.size >= KNOWN_NAMES) knownNames.clear();
    knownNames.set(name, (other = normalizeName(name)));
  }
  return other;
}

/** The number of edits between two texts; swapped letters are one edit. Above the limit only that it is above is exact. */
function distance(a: string, b: string, limit: number): number {
  let before: number[] = [];
  let previous: number[] = [];
  let current: number[] = [];
  for (let j = 0; j <= b.length; j += 1) previous.push(j);
  for (let i = 1; i <= a.length; i += 1) {
    let least = (current[0] = i);
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let edits = (previous[j - 1] as number) + same;
      edits = Math.min(edits, (previous[j] as number) + 1, (current[j - 1] as number) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits = Math.min(edits, (before[j - 2] as number) + 1);
      current[j] = edits;
      if (edits < least) least = edits;
    }
    // A swap reaches back over one row: it adds one edit to what the row before last had.
    if (least > limit + 1) return least;
    [before, previous, current] = [previous, current, before];
  }
  return previous[b.length] as number;
}

/** At most three similar candidates, the most similar first: one edit per four letters. */
export function suggestNames(name: string, candidates: readonly string[]): string[] {
  const written = normalizeName(name);
  const limit = Math.max(1, Math.ceil(written.text.length / 4));
  const near: { readonly candidate: string; readonly edits: number }[] = [];
  for (const candidate of candidates) {
    const other = normalizeCandidate(candidate);
    if (leastEdits(written, other) > limit) continue;
    const edits = distance(written.text, other.text, limit);
    if (edits <= limit) near.push({ candidate, edits });
  }
  return near
    .sort((a, b) => a.edits - b.edits || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** Readable on every class, whatever its allowlist. */
export const ALWAYS_KEEP = ['objectId', 'createdAt', 'updatedAt'] as const;

/**
 * How often callers of one policy named a class or column that the schema snapshot does not have. It may exist since: who counts
 * before and after a question knows whether the answer rests on a name that is missing.
 */
export class MissingNames {
  count = 0;

  add(): void {
    this.count += 1;
  }
}

/** The names of a class for callers, which may be those of new columns. */
export class AskedNames extends FieldNames {
  /** @param stored columns that there are, and that the class does not have for these callers */
  constructor(
    aliases: ReadonlyMap<string, string>,
    columns: ReadonlyMap<string, unknown> | null,
    private readonly missing: MissingNames,
    private readonly stored?: ReadonlyMap<string, unknown>,
  ) {
    super(aliases, columns);
  }

  override noteMissing(written: string): void {
    if (!this.stored?.has(written)) this.missing.add();
  }
}
