import fc, { type Arbitrary } from 'fast-check';
import {
  Binary,
  BSONRegExp,
  BSONSymbol,
  Code,
  Decimal128,
  type Document,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'mongodb';
import type { ClassConfig } from '#policy';

/** What is stored, named, so that a test can check that each kind occurred. */
interface Stored {
  readonly kind: string;
  readonly value: unknown;
}

export const HIDDEN = 'Vault';
export const KNOWN = 'Person';
export const CALLER = 'uCaller';
/** A role that the caller does not have. */
export const ROLE = 'readers';

const of = (kind: string, ...values: readonly unknown[]): Arbitrary<Stored> =>
  fc.constantFrom(...values.map((value) => ({ kind, value })));
const made = (kind: string, arbitrary: Arbitrary<unknown>): Arbitrary<Stored> =>
  arbitrary.map((value) => ({ kind, value }));

const pointer = (className: string) => ({ __type: 'Pointer', className, objectId: 'r1' });
const PLAIN = of(
  'text',
  'a',
  'some text',
  '',
  'x'.repeat(47),
  'y'.repeat(500),
  '2024-02-30',
  '</script>',
  'null',
);
const ESCAPED = of(
  'escaped text',
  'a "quote"',
  'back\\slash',
  'line\nand\ttab',
  '\u0000\u001f\u007f',
  '\\u0041\\n',
);
const UNICODE = of(
  'unicode text',
  'ünïcödé',
  '日本語 🎵',
  '\u2028\u2029\ufeff',
  '\u0080\ufffd',
  '🎵'.repeat(30),
);
const DOLLAR = of(
  'dollar text',
  '$5',
  'a$b',
  `${HIDDEN}$r1`,
  `${KNOWN}$r1`,
  '$',
  `x ${HIDDEN}$r1`,
  `${HIDDEN}$`,
);
const INT = made('int', fc.integer());
const DOUBLE = of(
  'double',
  1.5,
  -0,
  0,
  1e21,
  5e-324,
  0.1 + 0.2,
  1e-7,
  123456789012,
  new Double(3),
  new Int32(4),
);
const NOT_FINITE = of('not finite', Number.NaN, Infinity, -Infinity);
const LONG = of(
  'long',
  Long.fromNumber(5),
  Long.fromString('9007199254740991'),
  Long.fromString('-9007199254740992'),
  Long.fromString('9007199254740993'),
  Long.MAX_VALUE,
  Long.MIN_VALUE,
);
const DECIMAL = of(
  'decimal',
  ...['1.10', '1E+3', '-0', '1234567890123456789', 'NaN'].map((text) => Decimal128.fromString(text)),
);
const BOOLEAN = of('boolean', true, false);
const NULL = of('null', null);
const DATE = made(
  'date',
  fc.date({ min: new Date('0000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
);
const FAR_DATE = of(
  'far date',
  new Date(8.64e15),
  new Date(-8.64e15),
  new Date(-62_167_219_200_001),
  new Date(253_402_300_800_000),
);
const OBJECT_ID = of('ObjectId', new ObjectId('64b5f0a1c2d3e4f5a6b7c8d9'));
const BYTES = of(
  'bytes',
  new Binary(Buffer.from('abc')),
  new Binary(Buffer.alloc(16, 7), 4),
  new Binary(Buffer.alloc(90, 1)),
);
const OTHER = of(
  'other BSON type',
  new Timestamp({ t: 5, i: 1 }),
  /a.b/i,
  new BSONRegExp('a', 'i'),
  // JavaScript cannot compile it.
  new BSONRegExp('(?i)a/b(', 'x'),
  new Code('return 1'),
  new MinKey(),
  new MaxKey(),
  new BSONSymbol('sym'),
);
const TYPED = of(
  'typed object',
  pointer(HIDDEN),
  pointer(KNOWN),
  { __type: 'Date', iso: new Date(5) },
  { __type: 'File', name: 'a.png', url: 'http://x/a.png' },
  { __type: 'Bytes', base64: 'QUJD' },
  { __type: 'Object', className: KNOWN, objectId: 'r2', name: 'n' },
  { __type: 'Pointer' },
);
const PLACE = of(
  'place',
  { type: 'Point', coordinates: [1, 2] },
  {
    type: 'Polygon',
    coordinates: [
      [
        [0, 0],
        [0, 1],
        [1, 1],
        [0, 0],
      ],
    ],
  },
  [10.5, 20.25],
  {
    type: 'LineString',
    coordinates: [
      [0, 0],
      [1, 1],
    ],
  },
);
const INSIDE = of(
  'row inside',
  { objectId: 'i', _rperm: ['nobody'], secret: 1 },
  { objectId: 'i', _rperm: ['*'], open: 1 },
  { objectId: 'i', _rperm: [`role:${ROLE}`], readers: 1 },
  { objectId: 'i', _rperm: 'malformed', a: 1 },
  { deep: { _rperm: [CALLER], a: 1 } },
  { ACL: { '*': { read: true } }, _hashed_password: 'h', _session_token: 's', kept: 1 },
);
const ODD_OBJECT = of(
  'odd object',
  { 2: 'b', 1: 'a', z: 1 },
  Object.defineProperty({ a: 1 }, '__proto__', { value: { b: 2 }, enumerable: true }),
  { [`${HIDDEN}$r1`]: 1, a$b: 2 },
  { toJSON: 'text', constructor: 1 },
  {},
  [],
  nested(70),
  nested(33),
);

function nested(depth: number): unknown {
  return depth === 0 ? 'bottom' : depth % 2 === 0 ? { a: nested(depth - 1) } : [nested(depth - 1)];
}

const SCALARS = [
  PLAIN,
  ESCAPED,
  UNICODE,
  DOLLAR,
  INT,
  DOUBLE,
  NOT_FINITE,
  LONG,
  DECIMAL,
  BOOLEAN,
  NULL,
  DATE,
  FAR_DATE,
  OBJECT_ID,
  BYTES,
  OTHER,
];
const SCALAR = fc.oneof(...SCALARS);
const EASY = fc.oneof(PLAIN, INT, BOOLEAN, NULL, DATE);
const EASY_LIST = made(
  'plain list',
  fc.array(EASY, { maxLength: 5 }).map((list) => list.map(({ value }) => value)),
);
const LIST = made(
  'list',
  fc
    .array(fc.oneof(SCALAR, TYPED, INSIDE, EASY_LIST), { maxLength: 4 })
    .map((list) => list.map(({ value }) => value)),
);
const OBJECT = made(
  'object',
  fc
    .dictionary(fc.constantFrom('a', 'b', 'iso', '_p_x', 'className'), fc.oneof(SCALAR, TYPED, LIST), {
      maxKeys: 3,
      noNullPrototype: true,
    })
    .map((object) => Object.fromEntries(Object.entries(object).map(([key, { value }]) => [key, value]))),
);
const ANYTHING = fc.oneof(...SCALARS, EASY_LIST, LIST, OBJECT, TYPED, PLACE, INSIDE, ODD_OBJECT);

const STORED_POINTER = fc.oneof(
  { weight: 4, arbitrary: of('stored pointer', `${KNOWN}$r1`, `${KNOWN}$Ab_-9`, 'Unknown$r7') },
  { weight: 1, arbitrary: of('stored pointer to a hidden class', `${HIDDEN}$r1`) },
  {
    weight: 1,
    arbitrary: of(
      'odd stored pointer',
      'nothing',
      '',
      null,
      `${KNOWN}$a b`,
      `${KNOWN}$a$b`,
      `${KNOWN}$`,
      7,
      '9x$r1',
      `${KNOWN}$é`,
    ),
  },
);

interface ColumnSpec {
  readonly column: string;
  /** Declared in the schema, under `field`. */
  readonly type?: object;
  readonly field?: string;
  readonly values: Arbitrary<Stored>;
}

/** Mostly what belongs there, sometimes anything. */
const mostly = (usual: Arbitrary<Stored>) =>
  fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: ANYTHING });

const declared = (name: string, type: string, usual: Arbitrary<Stored>, more: object = {}): ColumnSpec => ({
  column: type === 'Pointer' ? `_p_${name}` : name,
  field: name,
  type: { type, ...more },
  values: mostly(usual),
});

const USUAL: readonly ColumnSpec[] = [
  declared('text', 'String', fc.oneof(PLAIN, PLAIN, ESCAPED, UNICODE, DOLLAR)),
  declared('note', 'String', PLAIN),
  declared('number', 'Number', fc.oneof(INT, DOUBLE, LONG)),
  declared('flag', 'Boolean', BOOLEAN),
  declared('when', 'Date', fc.oneof(DATE, DATE, FAR_DATE)),
  declared('place', 'GeoPoint', PLACE),
  declared('area', 'Polygon', PLACE),
  declared('file', 'File', of('file', 'a.png', '')),
  declared('bytes', 'Bytes', fc.oneof(of('base64', 'QUJD'), BYTES)),
  declared('list', 'Array', fc.oneof(EASY_LIST, LIST)),
  declared('bag', 'Object', OBJECT),
  declared('author', 'Pointer', STORED_POINTER, { targetClass: KNOWN }),
  declared('vault', 'Pointer', STORED_POINTER, { targetClass: HIDDEN }),
  declared('owner', 'String', of('tenant', 'north', 'north', 'south')),
  { column: 'loose', values: ANYTHING },
  { column: '_p_free', values: STORED_POINTER },
  { column: 'with space', values: mostly(PLAIN) },
  { column: 'ünï "quoted"', values: mostly(PLAIN) },
  { column: '_private', values: ANYTHING },
  { column: '_hashed_password', values: PLAIN },
  { column: '_session_token', values: PLAIN },
  { column: '_auth_data_x', values: OBJECT },
  { column: 'toJSON', values: mostly(PLAIN) },
];

/** Names that an object treats differently from text: the answers with them are made of objects. */
const ODD: readonly ColumnSpec[] = [
  { column: '7', values: mostly(PLAIN) },
  { column: 'a$b', values: mostly(PLAIN) },
  { column: '__proto__', values: mostly(OBJECT) },
  { column: 'className', values: of('class name', HIDDEN, KNOWN, 'plain', 5) },
  { column: 'objectId', values: mostly(PLAIN) },
  { column: 'ACL', values: mostly(OBJECT) },
  { column: 'createdAt', values: mostly(DATE) },
  { column: '_p_text', values: STORED_POINTER },
  { column: '', values: mostly(PLAIN) },
];

const ID = fc.oneof(
  { weight: 20, arbitrary: of('id', 'r') },
  { weight: 1, arbitrary: of('odd id', 'has "quote"', 'has $', 'ünï', '') },
  { weight: 1, arbitrary: fc.constant({ kind: 'ObjectId id', value: null }) },
  { weight: 1, arbitrary: of('number id', 1.5, 7) },
);
const TIME = mostly(DATE);
const RIGHTS = fc.constantFrom<Document>(
  {},
  {},
  { _rperm: ['*'], _wperm: [], _acl: { '*': { r: true } } },
  { _rperm: [CALLER], _wperm: [CALLER] },
  { _rperm: [`role:${ROLE}`], _wperm: [] },
  { _rperm: [], _wperm: [] },
  { _acl: { [CALLER]: { r: true, w: true } } },
);

/** A class, its rules and what is stored of it. */
export interface StoredClass {
  readonly fields: Readonly<Record<string, object>>;
  readonly permissions: object;
  readonly policy: ClassConfig;
  readonly documents: readonly Document[];
  /** The kinds of values in the documents. */
  readonly kinds: readonly string[];
}

const maybe = <T>(weight: number, arbitrary: Arbitrary<T>): Arbitrary<T | undefined> =>
  fc.oneof({ weight: 10 - weight, arbitrary: fc.constant(undefined) }, { weight, arbitrary });

const columns = (odd?: ColumnSpec) =>
  fc.subarray([...USUAL], { minLength: 3 }).map((usual) => (odd ? [...usual, odd] : usual));

const document = (specs: readonly ColumnSpec[]) =>
  fc
    .tuple(
      ID,
      TIME,
      maybe(9, TIME),
      RIGHTS,
      fc.tuple(...specs.map(({ column, values }) => maybe(8, values).map((stored) => ({ column, stored })))),
      fc.boolean(),
    )
    .map(([id, created, updated, rights, members, rightsFirst]) => {
      const stored: Document = {};
      const set = (column: string, value: unknown) =>
        Object.defineProperty(stored, column, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      set('_id', id.value);
      if (rightsFirst) Object.assign(stored, rights);
      for (const member of members) if (member.stored) set(member.column, member.stored.value);
      set('_created_at', created.value);
      if (updated) set('_updated_at', updated.value);
      if (!rightsFirst) Object.assign(stored, rights);
      const kinds = [id, created, ...members.flatMap(({ stored: one }) => one ?? [])].map(({ kind }) => kind);
      return { stored, kinds: [...kinds, ...members.flatMap((one) => (one.stored ? [] : ['missing']))] };
    });

const OPEN = { find: { '*': true }, get: { '*': true }, count: { '*': true } };

/** Lists of columns that class-level permissions hide: from everybody, from users, from one, and where a row does not name it. */
const permissions = (specs: readonly ColumnSpec[]) => {
  const hidden = fc.subarray(specs.flatMap(({ field }) => field ?? []));
  return maybe(
    4,
    fc.tuple(hidden, maybe(2, hidden), maybe(5, hidden), maybe(5, hidden), maybe(1, hidden)),
  ).map((lists) => {
    if (!lists) return OPEN;
    const [everybody, users, caller, role, named] = lists;
    return {
      ...OPEN,
      protectedFields: {
        '*': everybody,
        ...(users && { authenticated: users }),
        ...(caller && { [CALLER]: caller }),
        ...(role && { [`role:${ROLE}`]: role }),
        ...(named && { 'userField:author': named }),
      },
    };
  });
};

const policy = (specs: readonly ColumnSpec[]): Arbitrary<ClassConfig> => {
  const names = specs.flatMap(({ field }) => field ?? []);
  const has = (name: string) => names.includes(name);
  return fc
    .tuple(
      maybe(4, fc.subarray(names)),
      maybe(1, fc.constantFrom('text', 'number')),
      maybe(3, fc.constant('owner')),
      maybe(2, fc.constant({ number: { $lte: 5 } })),
    )
    .map(([fields, masked, tenant, filter]) => ({
      description: 'A class of a test',
      ...(fields && { fields: [...new Set([...fields, ...(tenant && has('owner') ? ['owner'] : [])])] }),
      ...(masked && has(masked) && { masks: { [masked]: 'mask' as const } }),
      ...(tenant && has('owner') && { tenantScope: { field: 'owner' } }),
      ...(filter && has('number') && { canonicalFilter: filter }),
    }));
};

/** @param odd a column that every row may have; then no rule hides it */
const classesWith = (odd?: ColumnSpec): Arbitrary<StoredClass> =>
  columns(odd).chain((specs) =>
    fc
      .tuple(
        fc.oneof(
          { weight: 4, arbitrary: fc.array(document(specs), { maxLength: 9, size: 'max' }) },
          { weight: 1, arbitrary: fc.array(document(specs), { minLength: 50, maxLength: 60, size: 'max' }) },
        ),
        odd ? fc.constant<ClassConfig>({ description: 'Nothing is hidden' }) : policy(specs),
        odd ? fc.constant(OPEN) : permissions(specs),
        maybe(3, fc.constant({ members: { type: 'Relation', targetClass: KNOWN } })),
      )
      .map(([documents, rules, rights, relation]) => ({
        fields: {
          ...Object.fromEntries(specs.flatMap(({ field, type }) => (field && type ? [[field, type]] : []))),
          ...relation,
        },
        permissions: rights,
        policy: rules,
        documents: documents.map(({ stored }, index) => withId(stored, index)),
        kinds: [...documents.flatMap(({ kinds }) => kinds), ...(relation ? ['relation'] : [])],
      })),
  );

export const storedClasses = classesWith();

/** One for each odd column. */
export const oddClasses: readonly Arbitrary<StoredClass>[] = ODD.map((column) => classesWith(column));

/** Ids differ. */
function withId(stored: Document, index: number): Document {
  const id: unknown = stored['_id'];
  if (id === null) return { ...stored, _id: ObjectId.createFromTime(index) };
  return { ...stored, _id: typeof id === 'string' ? `${id}${index}` : (id as number) + index * 100 };
}

/** Every kind that the generator is meant to make. */
export const KINDS = [
  'text',
  'escaped text',
  'unicode text',
  'dollar text',
  'int',
  'double',
  'not finite',
  'long',
  'decimal',
  'boolean',
  'null',
  'date',
  'far date',
  'ObjectId',
  'bytes',
  'other BSON type',
  'typed object',
  'place',
  'row inside',
  'odd object',
  'plain list',
  'list',
  'object',
  'stored pointer',
  'stored pointer to a hidden class',
  'odd stored pointer',
  'missing',
  'relation',
  'class name',
  'odd id',
  'ObjectId id',
  'number id',
  'tenant',
  'file',
  'base64',
] as const;

/** Arguments of `query_class`, without the class. */
export const queries: Arbitrary<Readonly<Record<string, unknown>>> = fc
  .record(
    {
      limit: fc.constantFrom(1, 2, 7, 50, 51, 100, 1000),
      skip: fc.constantFrom(0, 0, 0, 1, 1, 55),
      order: fc.constantFrom('-createdAt', 'objectId', '-objectId', '-updatedAt,objectId', 'text,-number'),
      keys: fc.oneof(
        {
          weight: 8,
          arbitrary: fc.subarray(['text', 'number', 'list', 'author', 'vault', 'loose', 'when', 'members']),
        },
        { weight: 1, arbitrary: fc.constant(['bag.a', 'text']) },
      ),
      where: fc.constantFrom(
        {},
        {},
        { objectId: { $gt: 'r1' } },
        { flag: { $ne: true } },
        { number: { $gt: 0 } },
        { objectId: 'none' },
      ),
    },
    { requiredKeys: [] },
  )
  .chain((args) =>
    fc
      .tuple(
        fc.oneof(
          { weight: 20, arbitrary: fc.constant(undefined) },
          { weight: 1, arbitrary: fc.constantFrom('csv', 'markdown') },
        ),
        fc.oneof(
          { weight: 20, arbitrary: fc.constant(undefined) },
          { weight: 1, arbitrary: fc.constant(['author']) },
        ),
      )
      .map(([format, include]) => ({ ...args, ...(format && { format }), ...(include && { include }) })),
  );
