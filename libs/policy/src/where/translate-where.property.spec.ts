import fc from 'fast-check';
import { find } from 'mingo';
import { describe, expect, it } from 'vitest';
import { hasInternalSegment, takeRoot } from '../model/field-names.js';
import { hasCrossClassQuery, isPlainObject, type Where } from '../model/where.js';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { translateWhere } from './translate-where.js';

const translate = (where: unknown) =>
  translateWhere(where, music('Song'), shopReach, { strictPointerShapes: true });

const OPEN = ['title', 'genre', 'play_count', 'PlayCount', 'meta', 'meta.a', 'tags', 'createdAt', 'artist'];
const CLOSED = ['royalty', 'Royalty', 'org_id', '_id', '_p_artist', 'fee', 'label'];
const INTERNAL = ['_rperm', 'authData', 'auth_data', 'ACL', 'meta._hashed_password', '_auth_data_x.id'];

const key = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...OPEN) },
  { weight: 1, arbitrary: fc.constantFrom(...CLOSED) },
  { weight: 1, arbitrary: fc.constantFrom(...INTERNAL) },
);
const scalar = fc.constantFrom<unknown>(0, 1, 'rock', 's1', '2024-01-01', true, null, new Date(0));
const typed = fc.constantFrom<unknown>(
  { __type: 'Pointer', className: 'Artist', objectId: 'a1', royalty: 1 },
  { __type: 'Date', iso: '2024-01-01', _rperm: 1 },
  { __type: 'Pointer', className: 'Vault', objectId: 'v' },
);
const { query } = fc.letrec<{ query: unknown; condition: unknown }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 3 },
    fc.dictionary(key, tie('condition'), { maxKeys: 3 }),
    fc.record({ $or: fc.array(tie('query'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ $and: fc.array(tie('query'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ $nor: fc.array(tie('query'), { minLength: 1, maxLength: 2 }) }),
  ),
  condition: fc.oneof(
    { maxDepth: 3 },
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: typed },
    {
      weight: 2,
      arbitrary: fc.dictionary(fc.constantFrom('$gt', '$lte', '$ne', '$eq'), scalar, {
        minKeys: 1,
        maxKeys: 2,
      }),
    },
    { weight: 1, arbitrary: fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ $exists: fc.boolean() }) },
    {
      weight: 1,
      arbitrary: fc.dictionary(fc.constantFrom('a', 'b', 'royalty', '_rperm'), tie('condition'), {
        maxKeys: 2,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        $inQuery: fc.record({ className: fc.constantFrom('Artist', 'Song', 'Vault'), where: tie('query') }),
      }),
    },
  ),
}));

/** The columns a constraint speaks of, each with its class. */
function columnsOf(where: Where, className: string): [string, string][] {
  return Object.entries(where).flatMap(([name, value]): [string, string][] => {
    if (name.startsWith('$')) return (value as Where[]).flatMap((branch) => columnsOf(branch, className));
    const inner = isPlainObject(value)
      ? (value['$inQuery'] as { className: string; where: Where })
      : undefined;
    return [[name, className], ...(inner ? columnsOf(inner.where, inner.className) : [])];
  });
}

describe('translateWhere, for any query', { timeout: 60_000 }, () => {
  it('never lets through a column outside the allowlist of its class, or an internal one', () => {
    let passed = 0;
    fc.assert(
      fc.property(query, (where) => {
        let translated: Where = {};
        if (catchRefusal(() => (translated = translate(where)))) return;
        const columns = columnsOf(translated, 'Song');
        if (columns.length > 1) passed += 1;
        expect(columns.filter(([path]) => hasInternalSegment(path))).toEqual([]);
        expect(
          columns.filter(([path, className]) => !music(className).readable?.has(takeRoot(path))),
        ).toEqual([]);
      }),
      { numRuns: 1000 },
    );
    expect(passed).toBeGreaterThan(20);
  });

  it('never lets the rows it matches depend on a hidden column', () => {
    const rows = (secret: string | number) =>
      ['s1', 's2', 's3'].map((objectId, i) => ({
        objectId,
        title: 'rock',
        genre: i % 2 ? 'rock' : null,
        playCount: i,
        meta: { a: i },
        tags: ['rock', i],
        royalty: secret,
        fee: secret,
        orgId: secret,
        _id: secret,
        _rperm: [secret],
      }));
    const matched = (data: object[], where: Where) =>
      find<{ objectId: string }>(data, where)
        .all()
        .map(({ objectId }) => objectId);
    const [one, other] = [rows('rock'), rows(0)];
    fc.assert(
      fc.property(query, (where) => {
        let translated: Where = {};
        if (catchRefusal(() => (translated = translate(where))) || hasCrossClassQuery(translated)) return;
        expect(matched(one, translated)).toEqual(matched(other, translated));
      }),
      { numRuns: 500 },
    );
  });

  it('throws nothing but refusals, whatever it is given', () => {
    const word = fc.constantFrom(
      '$or',
      '$in',
      '$regex',
      '$options',
      '$near',
      '$geoWithin',
      '$inQuery',
      '$relatedTo',
      '__type',
      'className',
      'where',
      'key',
      'title',
      'artist',
      'createdAt',
    );
    const { junk } = fc.letrec<{ junk: unknown }>((tie) => ({
      junk: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom<unknown>(
          null,
          1,
          '',
          '$',
          'Artist',
          'Date',
          'Pointer',
          'Polygon',
          Number.NaN,
          undefined,
          10n,
          new Date(Number.NaN),
          new Map(),
          () => 1,
        ),
        fc.array(tie('junk'), { maxLength: 3 }),
        fc.dictionary(word, tie('junk'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(fc.oneof(junk, fc.anything(), query), (where) => {
        expect(() => catchRefusal(() => translate(where))).not.toThrow();
      }),
      { numRuns: 500 },
    );
  });

  it('passes every query on allowed fields in allowed shapes', () => {
    const number = fc.integer();
    const text = fc.string();
    const any = [fc.record({ $ne: fc.constant(null) }), fc.record({ $exists: fc.boolean() })];
    const ofNumbers = fc.oneof(number, fc.record({ $gt: number, $lte: number }), ...any);
    const ofTexts = fc.oneof(
      text,
      fc.record({ $in: fc.array(text) }),
      fc.record({ $regex: fc.constantFrom('^a', 'b+c', '(x|y)*'), $options: fc.constant('i') }),
      ...any,
    );
    const mapEntries = (names: readonly string[], condition: fc.Arbitrary<unknown>) =>
      fc.dictionary(fc.constantFrom(...names), condition);
    const plain = fc.oneof(
      mapEntries(['title', 'genre', 'meta.a', 'tags'], ofTexts),
      mapEntries(['play_count', 'PlayCount', 'meta.a', 'tags'], ofNumbers),
    );
    const legal = fc.oneof(
      plain,
      fc.record({ $or: fc.array(plain, { minLength: 1 }) }),
      fc.record({ $nor: fc.array(plain, { minLength: 1 }) }),
      fc.record({
        artist: fc.record({
          $inQuery: fc.record({
            className: fc.constant('Artist'),
            where: fc.dictionary(fc.constant('name'), text),
          }),
        }),
      }),
    );
    fc.assert(
      fc.property(legal, (where) => {
        expect(catchRefusal(() => translate(where))).toBeNull();
      }),
    );
  });

  it('is stable: translating its own answer changes nothing', () => {
    fc.assert(
      fc.property(query, (where) => {
        let translated: Where = {};
        if (catchRefusal(() => (translated = translate(where)))) return;
        const again = catchRefusal(() => expect(translate(translated)).toEqual(translated));
        expect(again?.message ?? 'maximum depth').toContain('maximum depth');
      }),
    );
  });
});
