import { isUtf8 } from 'node:buffer';
import { type BSONSerializeOptions, Long, ObjectId } from 'mongodb';
import type { ParseRow, RowForm } from '#data';
import { BSON_TYPE, readDocument, int32At, valueSize } from '../storage/documents.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { isPointerColumn } from '../storage/parse-values.js';
import { listWantedFields } from './includes.js';
import { JsonText, SCALAR_ROOM } from './json-text.js';

/** Bytes of documents that are written without a pause; larger answers become objects, with pauses. */
const MAX_BYTES = 512 * 1024;

/** Columns of a class, and classes that a pointer column names, that are remembered. */
const MAX_COLUMNS = 1024;
const MAX_CLASSES = 64;

/** A row whose text could differ from that of its object. */
class UnfitRow extends Error {}
const UNFIT = new UnfitRow('this row is read as an object');

/**
 * Found documents as text in the given form, without objects for rows or plain values. Null: they have to be read as objects,
 * which is also what reports a document that cannot be read.
 * @param keys the requested columns; absent: all
 */
export function rowsText(
  documents: readonly Uint8Array[],
  storage: ClassStorage,
  form: RowForm,
  keys: readonly string[] | undefined,
): Buffer | null {
  if (documents.reduce((sum, { byteLength }) => sum + byteLength, 0) > MAX_BYTES) return null;
  try {
    return createPlan(form, storage)?.writeRows(documents, form, keys) ?? null;
  } catch {
    return null;
  }
}

const plans = new WeakMap<RowForm['rules'], RowTextPlan | 'met once'>();

/** Null for rules that were not met before: those of a sub-agent serve one call, and learning them takes longer than it. */
function createPlan({ rules, decisive }: RowForm, storage: ClassStorage): RowTextPlan | null {
  const known = plans.get(rules);
  if (known instanceof RowTextPlan && known.storage === storage) return known;
  const plan = known === undefined ? null : new RowTextPlan(storage, rules, decisive);
  plans.set(rules, plan ?? 'met once');
  return plan;
}

/** Kinds of stored values that a column shows as they are. */
const TAKES_TEXT = 1;
const TAKES_NUMBER = 2;
const TAKES_BOOLEAN = 4;
const TAKES_NULL = 8;
const TAKES_DATE = 16;
const TAKES_LIST = 32;
const TAKES_LONG = 64;

/** Examples of each kind, and what is shown of them where the column shows them as they are. */
const EXAMPLES: readonly (readonly [kind: number, stored: unknown, shown: unknown])[] = [
  [TAKES_TEXT, 'plain', 'plain'],
  [TAKES_TEXT, '', ''],
  [TAKES_NUMBER, 1.5, 1.5],
  [TAKES_NUMBER, 0, 0],
  [TAKES_NUMBER, -7, -7],
  [TAKES_LONG, Long.fromNumber(7), 7],
  [TAKES_BOOLEAN, true, true],
  [TAKES_BOOLEAN, false, false],
  [TAKES_NULL, null, null],
  [TAKES_DATE, new Date(0), '1970-01-01T00:00:00.000Z'],
  [TAKES_LIST, [], []],
  [TAKES_LIST, [1.5, 2.5], [1.5, 2.5]],
  [
    TAKES_LIST,
    ['plain', 1.5, true, null, new Date(0)],
    ['plain', 1.5, true, null, '1970-01-01T00:00:00.000Z'],
  ],
];

const POINTER_EXAMPLE = 'Example$example';

const EXAMPLE_TEXTS = ['parley-example-1', 'parley-example-2'] as const;
const EXAMPLE_IDS = ['a1b2c3d4e5f60718293a4b5c', '5c4b3a29180716f5e4d3c2b1'] as const;

interface Column {
  readonly column: string;
  /** Its name with the zero byte behind it. */
  readonly name: Uint8Array;
  /** Null: no row shows it. */
  readonly shown: ShownColumn | null;
}

interface ShownColumn {
  readonly column: string;
  readonly field: string;
  /** The kinds that are shown as they are. */
  readonly kinds: number;
  /** The key of the first member of a row, and of any other. */
  readonly first: Uint8Array;
  readonly next: Uint8Array;
  /** What surrounds the id of a pointer, by the class of the pointer; null: it has no fixed form. */
  readonly pointers: Map<string, PointerText | null> | null;
  /** What surrounds an ObjectId; null: it has no fixed form. */
  readonly objectId: PointerText | null;
  /** The same of a reference whose stored id is text. */
  readonly textId: PointerText | null;
  /** The last row that had this field. */
  lastRow: { row: number };
}

/** A pointer without its id. */
interface PointerText {
  readonly before: Uint8Array;
  /** Null: the id is not shown. */
  readonly after: Uint8Array | null;
}

const PIECES = {
  comma: Buffer.from(','),
  open: Buffer.from('{'),
  close: Buffer.from('}'),
};

/** Answers are written one after the other, without waiting in between. */
const json = new JsonText();
const NO_RELATIONS: ReadonlySet<string> = new Set();

/**
 * How the rows of one class are written under one form: worked out for each column once, by showing examples to the functions
 * that make objects. Nothing here knows a rule.
 */
class RowTextPlan {
  private readonly columns = new Map<string, Column>();
  private readonly rowsOfFields = new Map<string, { row: number }>();
  /** The column at each place of the last row: the next row mostly has the same. */
  private readonly sequence: (Column | undefined)[] = [];
  private row = 0;

  constructor(
    readonly storage: ClassStorage,
    private readonly rules: RowForm['rules'],
    private readonly decisive: ReadonlySet<string>,
  ) {}

  /** @throws UnfitRow and whatever reading a document throws */
  writeRows(documents: readonly Uint8Array[], form: RowForm, keys: readonly string[] | undefined): Buffer {
    const relations = this.relations(form, keys);
    json.begin();
    for (const [index, document] of documents.entries()) {
      const bytes = Buffer.isBuffer(document)
        ? document
        : Buffer.from(document.buffer, document.byteOffset, document.byteLength);
      json.reserve(SCALAR_ROOM);
      if (index > 0) json.writeFixed(PIECES.comma);
      this.writeRow(bytes, form, relations);
    }
    return json.end();
  }

  /** Relations have no column; every row ends with the same. */
  private relations(form: RowForm, keys: readonly string[] | undefined): readonly [string, unknown][] {
    const { relations } = this.storage;
    if (relations.size === 0) return [];
    // Read as the end of a row that has nothing else.
    const ends = Object.entries(form.showRow(this.storage.toRow({}, listWantedFields(keys))));
    if (ends.some(([field]) => isOddName(field) || this.decisive.has(field))) throw UNFIT;
    return ends;
  }

  private writeRow(bytes: Buffer, form: RowForm, relations: readonly [string, unknown][]): void {
    const end = int32At(bytes, 0) - 1;
    const { sequence } = this;
    const row = (this.row += 1);
    json.writeFixed(PIECES.open);
    let at = 4;
    let place = 0;
    let members = 0;
    while (at < end) {
      const type = bytes[at] as number;
      at += 1;
      let column = sequence[place];
      if (column === undefined || !isNamed(bytes, at, column.name)) column = this.columnAt(bytes, at, place);
      // Objects begin with the id.
      if (place === 0 && column.column !== '_id') throw UNFIT;
      place += 1;
      at += column.name.length;
      const size = valueSize(bytes, type, at);
      const { shown } = column;
      if (shown !== null) {
        // An object keeps the place of the first and the value of the last.
        if (shown.lastRow.row === row) throw UNFIT;
        shown.lastRow.row = row;
        json.beginMember();
        json.reserve(shown.next.length + SCALAR_ROOM);
        json.writeFixed(members === 0 ? shown.first : shown.next);
        const isWritten =
          this.writeValue(bytes, type, at, size, shown) ||
          this.writeAsObject(bytes, type, at, size, shown, form);
        if (isWritten) members += 1;
        else json.dropMember();
      }
      at += size;
    }
    for (const [field, value] of relations) {
      if (this.rowsOfFields.get(field)?.row === row) throw UNFIT;
      const piece = keyPiece(field, members > 0);
      json.reserve(piece.length);
      json.writeFixed(piece);
      writeJson(value);
      members += 1;
    }
    json.reserve(SCALAR_ROOM);
    json.writeFixed(PIECES.close);
  }

  private columnAt(bytes: Buffer, at: number, place: number): Column {
    const end = bytes.indexOf(0, at);
    if (end < 0 || !isUtf8(bytes.subarray(at, end))) throw UNFIT;
    const name = bytes.toString('utf8', at, end);
    let column = this.columns.get(name);
    if (!column) {
      if (this.columns.size >= MAX_COLUMNS) throw UNFIT;
      column = { column: name, name: Buffer.from(`${name}\0`), shown: this.describeColumn(name) };
      this.columns.set(name, column);
    }
    this.sequence[place] = column;
    return column;
  }

  private describeColumn(column: string): ShownColumn | null {
    if (isOddName(column)) throw UNFIT;
    const [field, another] = Object.keys(this.storage.toRow({ [column]: POINTER_EXAMPLE }, NO_RELATIONS));
    if (field === undefined) return null;
    if (another !== undefined || isOddName(field) || this.decisive.has(field)) throw UNFIT;
    if (Object.keys(this.rules({ [field]: null })).length === 0) return null;
    // A field that is made of several columns.
    if (field !== this.storage.toField(column)) throw UNFIT;
    let kinds = 0;
    let others = 0;
    for (const [kind, stored, shown] of EXAMPLES) {
      const made = this.rules(this.storage.toRow({ [column]: stored }, NO_RELATIONS));
      if (JSON.stringify(made) === JSON.stringify({ [field]: shown })) kinds |= kind;
      else others |= kind;
    }
    let lastRow = this.rowsOfFields.get(field);
    if (!lastRow) this.rowsOfFields.set(field, (lastRow = { row: 0 }));
    const isReference = this.storage.field(field)?.type === 'Pointer' && !isPointerColumn(column);
    return {
      column,
      field,
      kinds: kinds & ~others,
      first: keyPiece(field, false),
      next: keyPiece(field, true),
      pointers: isPointerColumn(column) ? new Map() : null,
      objectId: this.writeSurrounding(column, field, EXAMPLE_IDS, (id) => ObjectId.createFromHexString(id)),
      textId: isReference ? this.writeSurrounding(column, field, EXAMPLE_TEXTS, (id) => id) : null,
      lastRow,
    };
  }

  /** @returns false for a value that is not shown as it is: nothing was written */
  private writeValue(bytes: Buffer, type: number, at: number, size: number, shown: ShownColumn): boolean {
    const { kinds } = shown;
    if (type === BSON_TYPE.text && shown.pointers)
      return this.writePointer(bytes, at + 4, at + size - 1, shown);
    if (type === BSON_TYPE.text && shown.textId)
      return this.writeTextId(bytes, at + 4, at + size - 1, shown.textId);
    if (type === BSON_TYPE.objectId && shown.objectId) return this.writeObjectId(bytes, at, shown.objectId);
    if (type === BSON_TYPE.list)
      return (kinds & TAKES_LIST) !== 0 && json.list(bytes, at, (kinds & TAKES_LONG) !== 0);
    return (kinds & findKind(type)) !== 0 && json.scalar(bytes, type, at, size);
  }

  private writePointer(bytes: Buffer, from: number, end: number, shown: ShownColumn): boolean {
    const dollar = bytes.indexOf(0x24, from);
    if (dollar < 0 || dollar >= end - 1) return false;
    if (!isPlainText(bytes, from, dollar) || !isPlainText(bytes, dollar + 1, end)) return false;
    const className = bytes.toString('latin1', from, dollar);
    let pointer = shown.pointers?.get(className);
    if (pointer === undefined) pointer = this.pointerText(className, shown);
    return pointer !== null && this.writeTextId(bytes, dollar + 1, end, pointer);
  }

  /** What surrounds the id: the parts that two pointers with different ids have in common. */
  private pointerText(className: string, { column, field, pointers }: ShownColumn): PointerText | null {
    if (!pointers || pointers.size >= MAX_CLASSES) return null;
    const text = this.writeSurrounding(column, field, EXAMPLE_TEXTS, (id) => `${className}$${id}`);
    pointers.set(className, text);
    return text;
  }

  private writeSurrounding(
    column: string,
    field: string,
    ids: readonly [string, string],
    stored: (id: string) => unknown,
  ): PointerText | null {
    const [one, other] = ids.map((id) => {
      const row = this.rules(this.storage.toRow({ [column]: stored(id) }, NO_RELATIONS));
      const value = Object.keys(row).length === 1 ? row[field] : undefined;
      return JSON.stringify(value) as string | undefined;
    });
    if (one === undefined) return null;
    const [before, after, more] = one.split(ids[0]);
    if (more !== undefined || one.replace(ids[0], ids[1]) !== other) return null;
    return {
      before: Buffer.from(before as string),
      after: after === undefined ? null : Buffer.from(after),
    };
  }

  private writeTextId(bytes: Buffer, from: number, end: number, { before, after }: PointerText): boolean {
    if (!isPlainText(bytes, from, end)) return false;
    json.reserve(before.length + (after?.length ?? 0) + (end - from));
    json.writeFixed(before);
    if (after !== null) {
      json.plain(bytes, from, end);
      json.writeFixed(after);
    }
    return true;
  }

  private writeObjectId(bytes: Buffer, at: number, { before, after }: PointerText): true {
    json.reserve(before.length + (after?.length ?? 0) + SCALAR_ROOM);
    json.writeFixed(before);
    if (after !== null) {
      json.hex(bytes, at, at + 12);
      json.writeFixed(after);
    }
    return true;
  }

  /** Any value, by the functions that make objects. @returns false when the row does not have it */
  private writeAsObject(
    bytes: Buffer,
    type: number,
    at: number,
    size: number,
    { column, field }: ShownColumn,
    form: RowForm,
  ): boolean {
    const row = form.showRow(
      this.storage.toRow(oneColumn(bytes, type, at, size, column, this.storage.bson), NO_RELATIONS),
    );
    const [name, another] = Object.keys(row);
    if (name === undefined) return false;
    if (name !== field || another !== undefined) throw UNFIT;
    writeJson(row[field]);
    return true;
  }
}

function isNamed(bytes: Uint8Array, at: number, name: Uint8Array): boolean {
  for (let index = 0; index < name.length; index += 1) if (bytes[at + index] !== name[index]) return false;
  return true;
}

/** Objects order such names before others, or treat them differently. */
function isOddName(name: string): boolean {
  return name === '__proto__' || name.includes('$') || /^\d/.test(name);
}

function keyPiece(field: string, isNext: boolean): Uint8Array {
  return Buffer.from(`${isNext ? ',' : ''}${JSON.stringify(field)}:`);
}

function writeJson(value: unknown): void {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw UNFIT;
  json.value(text);
}

/** A document with one column of another. */
function oneColumn(
  bytes: Buffer,
  type: number,
  at: number,
  size: number,
  column: string,
  bson: BSONSerializeOptions,
): ParseRow {
  const name = Buffer.from(`${column}\0`);
  const document = Buffer.allocUnsafe(4 + 1 + name.length + size + 1);
  document.writeInt32LE(document.length, 0);
  document[4] = type;
  name.copy(document, 5);
  bytes.copy(document, 5 + name.length, at, at + size);
  document[document.length - 1] = 0;
  return readDocument(document, bson);
}

/** Letters, digits, `_` and `-`: what ids and class names consist of. */
const IN_POINTER = new Uint8Array(256);
for (let code = 0; code < 256; code += 1) if (/[\w-]/.test(String.fromCharCode(code))) IN_POINTER[code] = 1;

function isPlainText(bytes: Uint8Array, from: number, end: number): boolean {
  for (let index = from; index < end; index += 1) if (IN_POINTER[bytes[index] as number] === 0) return false;
  return true;
}

function findKind(type: number): number {
  switch (type) {
    case BSON_TYPE.text:
      return TAKES_TEXT;
    case BSON_TYPE.int32:
    case BSON_TYPE.double:
      return TAKES_NUMBER;
    case BSON_TYPE.int64:
      return TAKES_LONG;
    case BSON_TYPE.boolean:
      return TAKES_BOOLEAN;
    case BSON_TYPE.null:
      return TAKES_NULL;
    case BSON_TYPE.date:
      return TAKES_DATE;
    default:
      return 0;
  }
}
