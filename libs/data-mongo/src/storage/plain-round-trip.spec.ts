import fc from 'fast-check';
import { Binary, BSON, Decimal128, type Document, Double, Int32, Long, ObjectId, UUID } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { readJson } from '#core';
import type { ParseRow } from '#data';
import { PATIENT } from '#data/contracts';
import type { ClassSchema, FieldSchema } from '#policy';
import { layOut, PlainStorage } from './plain-storage.js';
import { type StoredKind, withKind } from './plain-scalars.js';

const EVERY_CHANGE = new Set(['create', 'update', 'delete'] as const);

interface Column {
  readonly field: FieldSchema;
  /** A value that the column may hold. */
  readonly stored: fc.Arbitrary<unknown>;
  /** Recognises what the generator has to make. */
  readonly is: (value: unknown) => boolean;
}

const column = (
  field: FieldSchema,
  kind: StoredKind | null,
  stored: fc.Arbitrary<unknown>,
  is: (value: unknown) => boolean,
): Column => ({ field: withKind(field, kind), stored, is });

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const objectId = bytes(12).map((raw) => new ObjectId(raw));
const uuid = fc.uuid().map((text) => new UUID(text));
const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((whole) => Long.fromBigInt(whole));
const decimal = fc
  .tuple(fc.bigInt({ min: -(10n ** 33n), max: 10n ** 33n }), fc.integer({ min: -60, max: 60 }))
  .map(([digits, exponent]) => Decimal128.fromString(`${digits}E${exponent}`));
const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((whole) => new Int32(whole));
const large = fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n }).map(Number);
const double = fc
  .oneof({ weight: 4, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) }, large)
  .filter((number) => !Object.is(number, -0))
  .map((number) => new Double(number));
const date = fc.date({ min: new Date('1900-01-01'), max: new Date('2100-01-01'), noInvalidDate: true });
const binary = fc.uint8Array({ maxLength: 30 }).map((raw) => new Binary(raw));
const point = fc
  .tuple(fc.double({ min: -180, max: 180, noNaN: true }), fc.double({ min: -90, max: 90, noNaN: true }))
  .map((pair) => ({ type: 'Point', coordinates: pair.map((number) => number + 0) }));

const hasMark = (mark: string) => (value: unknown) =>
  (value as { _bsontype?: unknown } | null)?._bsontype === mark;
const readList = (is: (value: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) && value.length > 0 && value.every(is);

const to = (targetClass: string): FieldSchema => ({ type: 'Pointer', targetClass });

const SCALARS: Readonly<Record<string, Column>> = {
  hexId: column({ type: 'String' }, 'objectId', objectId, hasMark('ObjectId')),
  uuid: column({ type: 'String' }, 'uuid', uuid, (value) => value instanceof UUID),
  decimal: column({ type: 'Number' }, 'decimal', decimal, hasMark('Decimal128')),
  long: column({ type: 'Number' }, 'long', long, hasMark('Long')),
  int: column({ type: 'Number' }, 'int', int, hasMark('Int32')),
  double: column({ type: 'Number' }, 'double', double, hasMark('Double')),
  date: column({ type: 'Date' }, 'date', date, (value) => value instanceof Date),
  text: column({ type: 'String' }, 'string', fc.string(), (value) => typeof value === 'string'),
  flag: column({ type: 'Boolean' }, 'bool', fc.boolean(), (value) => typeof value === 'boolean'),
  bytes: column({ type: 'Bytes' }, 'binary', binary, hasMark('Binary')),
  place: column({ type: 'GeoPoint' }, 'geoJson', point, (value) => (value as Document)['type'] === 'Point'),
  none: column({ type: 'String' }, 'string', fc.constant(null), (value) => value === null),
  byObjectId: column(to('Order'), 'objectId', objectId, hasMark('ObjectId')),
  byUuid: column(to('Visit'), 'uuid', uuid, (value) => value instanceof UUID),
  byText: column(to('Word'), 'string', fc.string({ minLength: 1 }), (value) => typeof value === 'string'),
};

const members = new Map(Object.entries(SCALARS).map(([name, { field }]) => [name, field]));
const nested = fc.record(
  Object.fromEntries(Object.entries(SCALARS).map(([name, { stored }]) => [name, stored])),
  { requiredKeys: [] },
);
const isDocument = (value: unknown) => Object.keys(value as object).length > 0;

const COLUMNS: Readonly<Record<string, Column>> = {
  ...SCALARS,
  document: column({ type: 'Object', members }, 'document', nested, isDocument),
  documents: column(
    { type: 'Array', members },
    'document',
    fc.array(nested, { maxLength: 3 }),
    readList(isDocument),
  ),
  references: column(
    { type: 'Array', targetClass: 'Order' },
    'objectId',
    fc.array(objectId, { maxLength: 3 }),
    readList(hasMark('ObjectId')),
  ),
  decimals: column(
    { type: 'Array' },
    'decimal',
    fc.array(decimal, { maxLength: 3 }),
    readList(hasMark('Decimal128')),
  ),
  words: column(
    { type: 'Array' },
    'string',
    fc.array(fc.string(), { maxLength: 3 }),
    readList((value) => typeof value === 'string'),
  ),
};

const schema: ClassSchema = {
  className: 'Thing',
  fields: new Map(Object.entries(COLUMNS).map(([name, { field }]) => [name, field])),
  indexes: [],
  classLevelPermissions: null,
  storage: 'plain',
};

const findStorage = (id: 'objectId' | 'string' | 'number' | 'uuid') => {
  const layout = {
    collection: 'things',
    id,
    columns: new Map(Object.keys(COLUMNS).map((name) => [name, `stored_${name}`])),
    timestamps: null,
    hidden: [],
    changes: EVERY_CHANGE,
    watchable: true,
  };
  layOut(schema, layout);
  return new PlainStorage(schema, layout);
};

const things = findStorage('objectId');

const throughBson = (document: Document): Document => BSON.deserialize(BSON.serialize(document), things.bson);
/** As an agent sends it back: where a number is refused, as the text that the refusal asks for. */
const throughJson = (row: ParseRow): ParseRow => readJson(JSON.stringify(row)).value as ParseRow;

const document = fc.record(
  Object.fromEntries(Object.entries(COLUMNS).map(([name, { stored }]) => [`stored_${name}`, stored])),
  { requiredKeys: [] },
);

/** How often the generator made a value of each column. */
const made = new Map<string, number>();

describe('the plain storage form', PATIENT, () => {
  it('gives a written row back byte for byte as it was stored', () => {
    fc.assert(
      fc.property(objectId, document, (_id, columns) => {
        for (const [name, { is }] of Object.entries(COLUMNS)) {
          const value: unknown = columns[`stored_${name}`];
          if (value !== undefined && is(value)) made.set(name, (made.get(name) ?? 0) + 1);
        }
        const stored = { _id, ...columns };
        const { objectId: id, ...fields } = throughJson(things.toRow(throughBson(stored)));
        things.newColumns(fields);
        const written = things.newDocument(fields, String(id), new Date(0));
        expect(BSON.serialize(written)).toEqual(BSON.serialize(stored));
      }),
      { numRuns: 300 },
    );
    for (const name of Object.keys(COLUMNS))
      expect({ name, often: (made.get(name) ?? 0) > 20 }).toEqual({ name, often: true });
  });

  const ids: ['objectId' | 'string' | 'number' | 'uuid', fc.Arbitrary<unknown>][] = [
    ['objectId', objectId],
    ['uuid', uuid],
    ['string', fc.string({ minLength: 1 })],
    ['number', fc.oneof(int, long, double)],
  ];
  it.each(ids)('gives every id of the kind %s as one text, and back', (kind, values) => {
    const storage = findStorage(kind);
    fc.assert(
      fc.property(values, (value) => {
        const read = throughBson({ _id: value })['_id'] as unknown;
        const text = storage.idFromStorage(read);
        const back = storage.idToStorage(text);
        expect(storage.idFromStorage(throughBson({ _id: back })['_id'])).toBe(text);
        // Numbers of several types are equal to the database.
        if (kind !== 'number') expect(BSON.serialize({ _id: back })).toEqual(BSON.serialize({ _id: value }));
      }),
    );
  });

  /** Numbers that the database takes for equal, in several types. */
  const equals = fc
    .tuple(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), fc.integer({ min: 0, max: 12 }))
    .map(([digits, zeros]) => [
      Long.fromBigInt(digits),
      Decimal128.fromString(`${digits}`),
      Decimal128.fromString(`${digits}.${'0'.repeat(zeros)}`),
      Decimal128.fromString(`${digits}${'0'.repeat(zeros)}E-${zeros}`),
      ...(Number.isSafeInteger(Number(digits)) ? [new Double(Number(digits))] : []),
    ]);

  it('gives equal numbers of all types one text, and finds them by it alone', () => {
    const storage = findStorage('number');
    const readId = (value: unknown) => storage.idFromStorage(throughBson({ _id: value })['_id'] as unknown);
    fc.assert(
      fc.property(equals, decimal, (same, other) => {
        expect(new Set(same.map(readId))).toEqual(new Set([String(same[0])]));
        expect(readId(storage.idToStorage(readId(other)))).toBe(readId(other));
      }),
    );
    const respelled = fc
      .tuple(
        fc.oneof(fc.integer(), fc.constantFrom(0, 1, 2.5, 1e21)).map(String),
        fc.constantFrom('.0', '0', 'e0', 'E0', 'e+0', '.', ' ', '00'),
      )
      .map(([text, end]) => text + end);
    const odd = fc.constantFrom(
      '-0',
      '-0.0',
      '+1',
      '01',
      '0x1',
      ' 1',
      '10e-1',
      '1E1',
      '0E+3',
      'NaN',
      'Infinity',
    );
    fc.assert(
      fc.property(fc.oneof(respelled, odd, fc.string()), (text) => {
        const stored = storage.idToStorage(text);
        if (typeof stored !== 'string') expect(readId(stored)).toBe(text);
      }),
    );
    for (const text of ['-0', '1.0', '1e0', '10e-1', '2.50', '1E1', ' 1'])
      expect(storage.idToStorage(text)).toBe(text);
  });

  it('never finds another row by a text that is no id', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const kind of ['objectId', 'uuid'] as const) {
          const stored = findStorage(kind).idToStorage(text);
          if (typeof stored !== 'string') expect(findStorage(kind).idFromStorage(stored)).toBe(text);
        }
      }),
    );
  });

  it('compares a value as it is stored', () => {
    fc.assert(
      fc.property(document, (columns) => {
        const row = throughJson(things.toRow(throughBson({ ...columns })));
        for (const name of Object.keys(SCALARS)) {
          const value = row[name];
          if (value === undefined || value === null || name === 'place') continue;
          const ref = things.resolve(name);
          const operand = ref.form.operandToStorage(value, ref);
          const stored = columns[`stored_${name}`];
          const text = (one: unknown) => String(things.toRow(throughBson({ x: one }))['x']);
          expect(text(operand)).toBe(text(stored));
        }
      }),
    );
  });
});
