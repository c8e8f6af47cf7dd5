import fc from 'fast-check';
import { madeOnce } from './made-once.js';
import { asOperand, POOL } from './cell-values.js';
import { GUESSES, INNER_PATHS, isHolding } from './held-objects.js';
import {
  type ClassName,
  CLASS_NAMES,
  type Column,
  COLUMNS,
  rowId,
  ROWS,
  TENANT_COLUMN,
} from './vocabulary.js';

export type Json = Record<string, unknown>;

export const className: fc.Arbitrary<ClassName> = fc.constantFrom(
  'Orchard',
  'Orchard',
  'Orchard',
  ...CLASS_NAMES,
);

const DEFAULT_COLUMNS: readonly Column[] = [
  { name: 'createdAt', kind: 'date' },
  { name: 'updatedAt', kind: 'date' },
  { name: 'objectId', kind: 'text' },
];

/** Names that no rule leaves to a caller, and spellings that could get past one. */
const ODD_NAMES = [
  '_id',
  'ACL',
  '_rperm',
  '_hashed_password',
  'authData',
  'sessionToken',
  '_created_at',
  'email',
  'password',
  '__proto__',
];

export const columnsOf = (name: ClassName): readonly Column[] => [
  ...COLUMNS[name],
  { name: TENANT_COLUMN[name], kind: 'text' },
];

export const anyColumn = madeOnce((name: ClassName): fc.Arbitrary<Column> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...columnsOf(name)) },
    { weight: 1, arbitrary: fc.constantFrom(...DEFAULT_COLUMNS) },
  ),
);

/** A column's name as somebody might write it. */
export const anyName = madeOnce((name: ClassName): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 40, arbitrary: anyColumn(name).map((column) => column.name) },
    { weight: 1, arbitrary: anyColumn(name).map((column) => `_p_${column.name}`) },
    { weight: 1, arbitrary: anyColumn(name).map((column) => snake(column.name)) },
    { weight: 1, arbitrary: fc.constantFrom(...ODD_NAMES) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          anyColumn(name),
          fc.constantFrom('tone', 'deep.level', 'objectId', 'className', 'frmTitle', '0', ...INNER_PATHS),
        )
        .map(([column, inner]) => `${column.name}.${inner}`),
    },
  ),
);

const snake = (text: string) => text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** An ordinary value or a mark, as the column would hold it. */
export const operand = (column: Column): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.nat(POOL - 1).map((index) => plain(column, index, false)) },
    { weight: 2, arbitrary: fc.nat(ROWS - 1).map((index) => plain(column, index, true)) },
    { weight: 1, arbitrary: fc.constantFrom(null, 0, '', 'plain 1', true) },
  );

function plain(column: Column, index: number, secret: boolean): unknown {
  if (column.name === 'objectId') return rowId('Orchard', index);
  return asOperand(column, index, secret);
}

function conditionOn(column: Column): fc.Arbitrary<unknown> {
  const value = operand(column);
  const several = fc.array(value, { minLength: 0, maxLength: 3 });
  const guess = fc.constantFrom(...GUESSES);
  return fc.oneof(
    { weight: 3, arbitrary: value },
    { weight: 3, arbitrary: fc.tuple(fc.constantFrom('$gt', '$gte', '$lt', '$lte'), value).map(pair) },
    { weight: 1, arbitrary: value.map((it) => ({ $ne: it })) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('$in', '$nin', '$all'), several).map(pair) },
    { weight: 2, arbitrary: fc.boolean().map((it) => ({ $exists: it })) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('^plain', '^ZEK', '^ZEKRET.*r[0-2]$', '1').map((it) => ({ $regex: it })),
    },
    {
      weight: isHolding(column) ? 8 : 0,
      arbitrary: fc.oneof(
        guess,
        fc.tuple(fc.constantFrom('$gt', '$lt', '$ne', '$eq'), guess).map(pair),
        fc
          .tuple(fc.constantFrom('$in', '$nin', '$all'), fc.array(guess, { minLength: 1, maxLength: 6 }))
          .map(pair),
        fc.constantFrom(
          { $gt: 'Ledger' },
          { $regex: 'row[01]' },
          { $lt: { __type: 'Pointer', className: 'Orchard', objectId: 'z' } },
        ),
      ),
    },
    {
      weight: column.kind === 'place' ? 14 : 0,
      arbitrary: fc.constantFrom(
        { $nearSphere: { __type: 'GeoPoint', latitude: 11, longitude: 21 } },
        {
          $nearSphere: { __type: 'GeoPoint', latitude: 33, longitude: 33 },
          $maxDistanceInKilometers: 500,
        },
        { $geoWithin: { $centerSphere: [[21, 11], 0.5] } },
        {
          $within: {
            $box: [
              { __type: 'GeoPoint', latitude: 9, longitude: 19 },
              { __type: 'GeoPoint', latitude: 40, longitude: 40 },
            ],
          },
        },
      ),
    },
  );
}

const conditions = new Map<string, fc.Arbitrary<unknown>>();
function condition(column: Column): fc.Arbitrary<unknown> {
  const known = conditions.get(column.name) ?? conditionOn(column);
  conditions.set(column.name, known);
  return known;
}

const pair = ([key, value]: [string, unknown]): Json => ({ [key]: value });

/** A constraint in Parse's words; every nesting asks something of some class. */
export const where = madeOnce((name: ClassName, depth: number): fc.Arbitrary<Json> => {
  const simple = anyColumn(name).chain((column) =>
    fc
      .tuple(condition(column), isHolding(column) ? fc.constantFrom('', ...INNER_PATHS) : fc.constant(''))
      .map(([asked, inner]): Json => ({ [inner === '' ? column.name : `${column.name}.${inner}`]: asked })),
  );
  const odd = fc
    .tuple(anyName(name), fc.constantFrom<unknown>('plain 1', 2, { $exists: true }, { $regex: '^Z' }))
    .map(pair);
  if (depth === 0) return fc.oneof({ weight: 12, arbitrary: simple }, { weight: 1, arbitrary: odd });
  const inner = fc.array(where(name, depth - 1), { minLength: 1, maxLength: 2 });
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant({}) },
    { weight: 12, arbitrary: simple },
    { weight: 1, arbitrary: odd },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('$or', '$and', '$nor'), inner).map(pair) },
    { weight: 2, arbitrary: fc.tuple(simple, simple).map(([left, right]) => ({ ...left, ...right })) },
    { weight: 3, arbitrary: acrossClasses(name, depth - 1) },
  );
});

/** Half of them hold objects, where there are such: what stands inside is compared as well. */
const comparedColumn = (name: ClassName): fc.Arbitrary<Column> => {
  const holding = columnsOf(name).filter(isHolding);
  return holding.length === 0 ? anyColumn(name) : fc.oneof(anyColumn(name), fc.constantFrom(...holding));
};

const acrossClasses = madeOnce((name: ClassName, depth: number): fc.Arbitrary<Json> => {
  const inQuery = fc.constantFrom(...CLASS_NAMES).chain((target) =>
    fc
      .tuple(anyColumn(name), fc.constantFrom('$inQuery', '$notInQuery'), where(target, depth))
      .map(([column, operator, inner]) => ({
        [column.name]: { [operator]: { className: target, where: inner } },
      })),
  );
  const pointers = columnsOf(name).filter(({ kind }) => kind === 'pointer');
  const led = fc.constantFrom(...(pointers.length > 0 ? pointers : columnsOf(name))).chain((column) => {
    const target = column.target ?? 'Orchard';
    return fc
      .tuple(fc.constantFrom('$inQuery', '$notInQuery'), where(target, depth))
      .map(([operator, inner]): Json => ({
        [column.name]: { [operator]: { className: target, where: inner } },
      }));
  });
  const select = fc.constantFrom(...CLASS_NAMES).chain((target) =>
    fc
      .tuple(
        anyColumn(name),
        fc.constantFrom('$select', '$dontSelect'),
        where(target, depth),
        comparedColumn(target),
        fc.constantFrom('', '.inner', '.1'),
      )
      .map(([column, operator, inner, { name: key, ...rest }, path]) => ({
        [column.name]: {
          [operator]: {
            query: { className: target, where: inner },
            key: isHolding({ name: key, ...rest }) ? key + path : key,
          },
        },
      })),
  );
  const related = fc
    .constantFrom<readonly [ClassName, string]>(['Orchard', 'orcPeers'], ['Ledger', 'lgrPaid'])
    .chain(([owner, key]) =>
      fc.nat(ROWS - 1).map((index) => ({
        $relatedTo: { object: { __type: 'Pointer', className: owner, objectId: rowId(owner, index) }, key },
      })),
    );
  return fc.oneof(
    { weight: 3, arbitrary: led },
    { weight: 1, arbitrary: inQuery },
    { weight: 2, arbitrary: select },
    { weight: 1, arbitrary: related },
  );
});
