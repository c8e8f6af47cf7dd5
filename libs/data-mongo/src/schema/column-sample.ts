import type { Document } from 'mongodb';
import { type ColumnOrigin, type FieldSchema, type FieldType, isPlainObject } from '#policy';
import { readDocument } from '../storage/documents.js';
import { fromGeoJson } from '../storage/parse-values.js';
import { isUuid, type StoredKind, withKind } from '../storage/plain-scalars.js';

/** Columns, and members of each, that are remembered of a sample. */
const MAX_COLUMNS = 500;
/** Levels of documents in documents that are looked into. */
const MAX_DEPTH = 5;
/** Entries of each list that are looked at. */
const MAX_ENTRIES = 20;

/** What the values of one column were in the documents of a sample. */
export class ColumnSample {
  private readonly seen = new Map<FieldType | 'Null', number>();
  private readonly kinds = new Set<StoredKind>();
  readonly members = new Map<string, ColumnSample>();
  private entries: ColumnSample | undefined;

  /** The entries of the lists. */
  get list(): ColumnSample | undefined {
    return this.entries;
  }

  /** The columns of documents, as BSON. Documents that cannot be read are left out: a class has more than one. */
  static of(documents: readonly Uint8Array[]): ColumnSample {
    const sample = new ColumnSample();
    for (const bytes of documents) {
      const document = readable(bytes);
      if (document) sample.add(document, 0);
    }
    return sample;
  }

  private add(value: unknown, depth: number): void {
    const { type, kind } = typeOfValue(value);
    this.seen.set(type, (this.seen.get(type) ?? 0) + 1);
    if (kind !== null) this.kinds.add(kind);
    if (depth >= MAX_DEPTH) return;
    if (Array.isArray(value)) {
      this.entries ??= new ColumnSample();
      for (const entry of value.slice(0, MAX_ENTRIES)) this.entries.add(entry, depth + 1);
    } else if (type === 'Object' && isPlainObject(value)) this.addMembers(value, depth);
  }

  private addMembers(document: Readonly<Record<string, unknown>>, depth: number): void {
    for (const [name, value] of Object.entries(document)) {
      let member = this.members.get(name);
      if (!member) {
        if (this.members.size >= MAX_COLUMNS) continue;
        this.members.set(name, (member = new ColumnSample()));
      }
      member.add(value, depth + 1);
    }
  }

  /** The most frequent type; null when every value was null. */
  get type(): FieldType | null {
    let found: FieldType | null = null;
    let most = 0;
    for (const [type, count] of this.seen) {
      if (type === 'Null' || count <= most) continue;
      found = type;
      most = count;
    }
    return found;
  }

  /** The one kind of all values; null when there are several, or none. Of a list, that of its entries. */
  get kind(): StoredKind | null {
    if (this.kinds.size !== 1) return null;
    const [kind] = this.kinds;
    return kind === 'list' ? (this.entries?.kind ?? null) : (kind ?? null);
  }

  get allKinds(): ReadonlySet<StoredKind> {
    return this.kinds;
  }

  get counts(): NonNullable<FieldSchema['seen']> {
    return Object.fromEntries(this.seen);
  }

  /** The members of documents, or of the entries of lists. */
  get fields(): ReadonlyMap<string, FieldSchema> | undefined {
    const { members } = this.type === 'Array' ? (this.entries ?? this) : this;
    const known = [...members].flatMap(([name, member]) => {
      const field = member.field('sample');
      return field ? [[name, field] as const] : [];
    });
    return known.length > 0 ? new Map(known) : undefined;
  }

  field(origin: ColumnOrigin): FieldSchema | null {
    const { type, kind, counts, fields } = this;
    if (type === null) return null;
    const entries = type === 'Array' && !fields ? this.entries?.field(origin) : null;
    return withKind(
      {
        type,
        ...(fields && { members: fields }),
        ...(entries && { entries }),
        ...(type === 'String' && kind === 'other' && { opaque: true as const }),
        origin,
        seen: counts,
      },
      kind,
    );
  }
}

function readable(bytes: Uint8Array): Document | null {
  try {
    return readDocument(bytes, { promoteLongs: false });
  } catch {
    return null;
  }
}

interface ValueType {
  readonly type: FieldType | 'Null';
  readonly kind: StoredKind | null;
}

const OTHER_TYPE: ValueType = { type: 'String', kind: 'other' };

/** Of BSON classes, by their marks. */
const BSON_TYPES: Readonly<Record<string, ValueType>> = {
  ObjectId: { type: 'String', kind: 'objectId' },
  Long: { type: 'Number', kind: 'long' },
  Decimal128: { type: 'Number', kind: 'decimal' },
  Binary: { type: 'Bytes', kind: 'binary' },
};

function typeOfValue(value: unknown): ValueType {
  if (value === null || value === undefined) return { type: 'Null', kind: null };
  if (Array.isArray(value)) return { type: 'Array', kind: 'list' };
  if (isPlainObject(value)) {
    const place = fromGeoJson(value);
    return place
      ? { type: place['__type'] as FieldType, kind: 'geoJson' }
      : { type: 'Object', kind: 'document' };
  }
  if (typeof value === 'string') return { type: 'String', kind: 'string' };
  // Programs store the same column as 32-bit numbers and as doubles, by its value.
  if (typeof value === 'number') return { type: 'Number', kind: 'other' };
  if (typeof value === 'boolean') return { type: 'Boolean', kind: 'bool' };
  if (value instanceof Date) return { type: 'Date', kind: 'date' };
  if (isUuid(value)) return { type: 'String', kind: 'uuid' };
  return BSON_TYPES[String((value as { _bsontype?: unknown })._bsontype)] ?? OTHER_TYPE;
}
