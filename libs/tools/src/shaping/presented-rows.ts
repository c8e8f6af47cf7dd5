import type { ParseRow } from '#data';
import { STORED_POINTER } from '#policy';
import type { ToolCall } from '../tool.js';

const isText = (value: unknown): value is string => typeof value === 'string';

/** The short form of a Parse type, or undefined when the value is none or lacks the members of its type. */
function shorten(typed: Readonly<ParseRow>): unknown {
  switch (typed['__type']) {
    case 'Date':
      return isText(typed['iso']) ? typed['iso'] : undefined;
    case 'Pointer': {
      const { className, objectId } = typed;
      return isText(className) && isText(objectId)
        ? { _type: 'Pointer', class: className, id: objectId }
        : undefined;
    }
    case 'File': {
      const { name, url } = typed;
      return isText(name) ? { _type: 'File', name, ...(isText(url) && { url }) } : undefined;
    }
    case 'GeoPoint': {
      const { latitude, longitude } = typed;
      return typeof latitude === 'number' && typeof longitude === 'number'
        ? { _type: 'GeoPoint', latitude, longitude }
        : undefined;
    }
    case 'Polygon': {
      const { coordinates } = typed;
      return Array.isArray(coordinates)
        ? { _type: 'Polygon', coordinates: simplify(coordinates) }
        : undefined;
    }
    case 'Bytes':
      return isText(typed['base64']) ? { _type: 'Bytes', base64: typed['base64'] } : undefined;
    case 'Relation':
      return isText(typed['className']) ? { _type: 'Relation', class: typed['className'] } : undefined;
    default:
      return undefined;
  }
}

/**
 * A value in the short form for agents: typed values without their Parse envelope, `ACL` removed at any depth. A value
 * with an invalid type envelope is treated as an ordinary object.
 */
export function simplify(value: unknown): unknown {
  if (value instanceof Date) return value.toJSON();
  if (Array.isArray(value)) return value.map(simplify);
  if (value === null || typeof value !== 'object') return value;
  return shorten(value as ParseRow) ?? simplifyRow(value as ParseRow);
}

export function simplifyRow(row: Readonly<ParseRow>): ParseRow {
  const simple: ParseRow = {};
  for (const key of Object.keys(row)) {
    if (key === 'ACL') continue;
    const value = simplify(row[key]);
    // Defined as a plain member; an assignment would change the prototype.
    if (key === '__proto__') Object.defineProperty(simple, key, { value, enumerable: true });
    else simple[key] = value;
  }
  return simple;
}

const PREFIX = '_p_';
const FIELD = /^[A-Za-z][A-Za-z0-9_]*$/;

export interface CompactedRows {
  readonly rows: ParseRow[];
  /** Maps a field to its class, for compacted columns; null when there were none. */
  readonly pointerClasses: Readonly<Record<string, string>> | null;
}

type Visit = (object: Readonly<Record<string, unknown>>) => void;

function eachObject(value: unknown, visit: Visit): void {
  if (Array.isArray(value)) {
    for (const entry of value) eachObject(entry, visit);
  } else if (value !== null && typeof value === 'object') {
    visit(value as Record<string, unknown>);
    for (const member of Object.values(value)) eachObject(member, visit);
  }
}

/** `author` for `_p_author`; other names stay unchanged, so that no internal name can arise. */
function readField(key: string): string | null {
  if (!key.startsWith(PREFIX)) return null;
  const field = key.slice(PREFIX.length);
  return FIELD.test(field) ? field : null;
}

function parsePointer(value: unknown): { className: string; objectId: string } | null {
  const match = typeof value === 'string' ? STORED_POINTER.exec(value) : null;
  return match ? { className: match[1] as string, objectId: match[2] as string } : null;
}

const isPlaceholder = (value: unknown): boolean =>
  value !== null && typeof value === 'object' && '__redacted' in value;

/** Columns of at most one class and without a field of their short name, with that class; null: no row has a pointer. */
function compactColumns(rows: readonly ParseRow[]): Map<string, string | null> {
  const classes = new Map<string, string | null>();
  const unfit = new Set<string>();
  eachObject(rows, (object) => {
    for (const key of Object.keys(object)) {
      const field = readField(key);
      if (field === null) continue;
      if (Object.hasOwn(object, field)) unfit.add(field);
      const seen = classes.get(field) ?? null;
      const className = parsePointer(object[key])?.className ?? seen;
      if (seen !== null && seen !== className) unfit.add(field);
      classes.set(field, className);
    }
  });
  for (const field of unfit) classes.delete(field);
  return classes;
}

function renameColumns(value: unknown, columns: ReadonlyMap<string, string | null>): unknown {
  if (Array.isArray(value)) return value.map((entry) => renameColumns(entry, columns));
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const field = readField(key);
      if (field === null || !columns.has(field)) return [key, renameColumns(member, columns)];
      const pointer = parsePointer(member);
      if (pointer) return [field, pointer.objectId];
      return [member === null || isPlaceholder(member) ? field : key, renameColumns(member, columns)];
    }),
  );
}

/**
 * Converts storage pointers `_p_f: "Class$id"` to `f: "id"`, with the class once for the whole result; empty and withheld ones get
 * the name. Other values that are no pointers stay unchanged, as do columns of more than one class.
 */
export function compactPointers(rows: readonly ParseRow[]): CompactedRows {
  const columns = compactColumns(rows);
  if (columns.size === 0) return { rows: [...rows], pointerClasses: null };
  const known = [...columns].filter((column): column is [string, string] => column[1] !== null);
  return {
    rows: rows.map((row) => renameColumns(row, columns) as ParseRow),
    pointerClasses: known.length > 0 ? Object.fromEntries(known) : null,
  };
}

/** Stages that keep each row's identity: its `_id` still names a row of the aggregated class. */
const KEEP_ROWS = new Set(['$match', '$sort', '$limit', '$skip', '$sample', '$redact', '$unset', '$unwind']);
/** Stages that add or select members: they keep identity unless they change the id. */
const ADD_MEMBERS = new Set(['$addFields', '$set', '$project']);
const JOINS = new Set(['$lookup', '$graphLookup']);
const IDENTITY = ['_id', 'objectId'];

const asObject = (value: unknown): Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};

function stageKeepsIdentity(stage: unknown): boolean {
  const [operator = '', value] = Object.entries(asObject(stage))[0] ?? [];
  if (KEEP_ROWS.has(operator)) return true;
  const body = asObject(value);
  if (JOINS.has(operator)) return !IDENTITY.includes(String(body['as']));
  if (!ADD_MEMBERS.has(operator)) return false;
  const inclusion = operator === '$project' ? [1, true, 0, false] : [];
  return IDENTITY.every((id) => !Object.hasOwn(body, id) || inclusion.includes(body[id] as number));
}

/** Whether the rows of a pipeline are rows of its class with their own ids. Grouped and reshaped rows are not. */
export function keepsRowIdentity(pipeline: unknown): boolean {
  return Array.isArray(pipeline) && pipeline.every(stageKeepsIdentity);
}

/**
 * Adds `_source` with the class, tool and row of origin. A `_source` in the data is replaced: otherwise stored text
 * could pose as provenance.
 */
export function stampSource(
  row: Readonly<ParseRow>,
  className: string,
  tool: string,
  objectId: string | null,
): ParseRow {
  const { _source: _, ...data } = row;
  return { ...data, _source: { class: className, tool, object_id: objectId } };
}

/** The id of a row, in either spelling. */
export function rowId(row: Readonly<ParseRow>): string | null {
  const id = row['objectId'] ?? row['_id'];
  return typeof id === 'string' ? id : null;
}

/** Rows in the short form, with their source when the operator enabled it. */
export function presentRows(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  return toSourced(rows.map(simplifyRow), className, call);
}

/** The stamp comes last: after redaction, projection and every conversion. */
export function toSourced(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  if (!call.switches.includeSourceProvenance) return [...rows];
  return rows.map((row) => stampSource(row, className, call.tool.name, rowId(row)));
}

/** Maximum growth factor of a text in JSON: a control character becomes the six of `\u0000`. */
const MAX_ESCAPE_FACTOR = 6;
/** Maximum bytes of the text of one result. */
export const MAX_RESULT_BYTES = 4_194_304;

/** The text of a result. @param pretty the policy's `prettyText`: indented by two spaces */
export function resultText(data: unknown, pretty: boolean): string {
  return JSON.stringify(data, null, pretty ? 2 : undefined) ?? 'null';
}

/** Line break, quotes, colon, comma and the longest number. */
const PER_VALUE = 32;

/**
 * An upper bound of a value's JSON in characters, indented or not, without printing it: a shared value counts at each
 * place.
 * @param most counting stops here: a larger value returns any number above it
 */
export function measurePrinted(value: unknown, most: number, depth = 0): number {
  if (typeof value === 'string') return value.length * MAX_ESCAPE_FACTOR + PER_VALUE + depth * 2;
  let size = PER_VALUE + depth * 4;
  if (value === null || typeof value !== 'object') return size;
  if (Array.isArray(value)) {
    for (const member of value) {
      if (size > most) return size;
      size += measurePrinted(member, most - size, depth + 1);
    }
    return size;
  }
  for (const name in value) {
    if (size > most) return size;
    size +=
      name.length * MAX_ESCAPE_FACTOR +
      measurePrinted((value as Record<string, unknown>)[name], most - size, depth + 1);
  }
  return size;
}
