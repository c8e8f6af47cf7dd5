import fc from 'fast-check';
import { ObjectId } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { maskRow, isPlainObject } from '#policy';
import { columnFromStorage } from './parse-values.js';
import { plainValue } from './plain-values.js';

const SECRET = 61.625;

const secret = fc.constant(SECRET);
const corner = fc.constantFrom([0, 0], [0, 1], [1, 1]);
const place = fc.oneof(
  fc.tuple(secret, fc.integer({ min: 0, max: 9 })).map((coordinates) => ({ type: 'Point', coordinates })),
  fc.record({ coordinates: fc.tuple(secret, secret), type: fc.constant('Point') }),
  fc.record({
    type: fc.constant('Polygon'),
    coordinates: fc.tuple(fc.tuple(corner, fc.tuple(secret, secret), corner)),
  }),
  fc.record({ type: fc.constant('LineString'), coordinates: fc.array(fc.tuple(secret, secret)) }),
  fc.record({ type: fc.constant('Point'), coordinates: fc.tuple(secret, secret), accuracy: secret }),
);
const { document } = fc.letrec<{ document: unknown }>((tie) => ({
  document: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    place,
    secret,
    secret.map((value) => ({ _id: new ObjectId(), value })),
    fc.array(tie('document'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'place'), tie('document'), { maxKeys: 3 }),
  ),
}));

/** The names on the way to each secret that a document holds, without places in lists. */
function listPaths(value: unknown, path: readonly string[] = []): string[][] {
  if (Array.isArray(value)) return value.flatMap((entry) => listPaths(entry, path));
  if (!isPlainObject(value)) return value === SECRET ? [[...path]] : [];
  return Object.entries(value).flatMap(([name, member]) => listPaths(member, [...path, name]));
}

type Masks = Parameters<typeof maskRow>[1];
type Mask = NonNullable<ReturnType<Masks['columns']['get']>>[number];

const toMask = (inside: string, rule: Mask['rule']): Mask => ({
  segments: inside === '' ? [] : inside.split('.'),
  path: `column.${inside}`,
  rule,
});

const NOTHING: ReadonlySet<string> = new Set();

function mask(row: { column: unknown }, paths: readonly Mask[]): void {
  const masks: Masks = {
    columns: new Map([['column', paths]]),
    shown: new Set(['column']),
    fetchable: NOTHING,
    secret: NOTHING,
    disclosed: NOTHING,
  };
  maskRow(
    row,
    masks,
    () => true,
    () => '',
  );
}

const FORMS = [
  ['other programs store', (value: unknown) => plainValue(value, undefined)],
  ['Parse stores', (value: unknown) => columnFromStorage(value, undefined, 'typed')],
] as const;

describe('masks on every secret part of a value that', () => {
  it.each(FORMS)('%s leave nothing of it, in whatever form a row shows it', (_, show) => {
    fc.assert(
      fc.property(document, fc.constantFrom('drop', 'deny', 'mask'), (stored, kind) => {
        const row = { column: show(stored) };
        const rule = kind === 'mask' ? { kind, keep: 0 } : { kind };
        mask(
          row,
          listPaths(stored).map((names) => toMask(names.join('.'), rule)),
        );
        expect(JSON.stringify(row)).not.toContain(String(SECRET));
      }),
    );
  });

  it.each(['type', 'coordinates', 'coordinates.0'])('is a place: %s masks all of it', (path) => {
    for (const [, show] of FORMS) {
      const row = { column: [show({ type: 'Point', coordinates: [1, 2] }), show({ type: 'Office' })] };
      const part = toMask(path, { kind: 'mask', keep: 2 });
      mask(row, [part]);
      expect(row.column[0]).toBe('***');
    }
  });
});
