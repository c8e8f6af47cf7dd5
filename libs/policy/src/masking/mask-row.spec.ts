import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, type Tier } from '#core';
import { findMaskedColumns } from './column-masks.js';
import { compileMasks, type MasksConfig } from './compile-masks.js';
import { MASKED_TEXT, maskRow, Pseudonyms } from './mask-row.js';

const KNOWN = new Set(['objectId', 'name', 'pin', 'address', 'card']);

function shortenText(row: Record<string, unknown>, masks: MasksConfig, tier: Tier = 'readonly') {
  const columns = findMaskedColumns(
    { masks: compileMasks(masks, '', []), listed: null, known: KNOWN, isWithheld: () => false },
    compileAgentDefinition('x', { permissions: tier }),
  );
  const copy = structuredClone(row);
  if (columns)
    maskRow(
      copy,
      columns.masks,
      () => true,
      (value) => `h(${JSON.stringify(value ?? null)})`,
    );
  return copy;
}

describe('a masked row', () => {
  it('has one form for every value, and for none', () => {
    const forms = [
      '4711',
      4711,
      true,
      null,
      undefined,
      { __type: 'Date', iso: '2024-01-01T00:00:00.000Z' },
      [],
    ];
    for (const pin of forms) {
      const row = shortenText({ name: 'a', ...(pin !== undefined && { pin }) }, { pin: 'mask' });
      expect(JSON.stringify(row)).toBe(JSON.stringify({ name: 'a', pin: MASKED_TEXT }));
    }
  });

  it('does not hold what is dropped or denied', () => {
    expect(shortenText({ name: 'a', pin: 1, card: 2 }, { pin: 'drop', card: 'deny' })).toEqual({ name: 'a' });
  });

  it('keeps the end of a value that is at least twice as long, and nothing of a shorter one', () => {
    const keepEnding = (card: unknown) => shortenText({ card }, { card: { mask: { keep: 4 } } })['card'];
    expect([
      keepEnding('4111111111111234'),
      keepEnding(41111234),
      keepEnding('1111234'),
      keepEnding({ a: 1 }),
    ]).toEqual(['***1234', '***1234', '***', '***']);
  });

  it('masks inside objects, and in each object of a list', () => {
    const address = [{ street: 'S', city: 'C' }, { city: 'D' }, 'text', [{ street: 'T' }]];
    const masked = {
      address: [{ city: 'C', street: '***' }, { city: 'D', street: '***' }, 'text', [{ street: '***' }]],
    };
    expect(shortenText({ address }, { 'address.street': 'mask' })).toEqual(masked);
    expect(shortenText({ address: { street: 'S', city: 'C' } }, { 'address.street': 'drop' })).toEqual({
      address: { city: 'C' },
    });
  });

  it('masks a path in whatever form another program stored it', () => {
    const around = fc.constantFrom<(value: unknown) => unknown>(
      (value) => value,
      (value) => [value],
      (value) => [[{ city: 'C' }, value]],
      (value) => ({ '0': value, city: 'C' }),
      (value) => ({ '7': [value] }),
    );
    const onPath = [['a', 'b', 'pin'], ['a.b', 'pin'], ['a', 'b.pin'], ['a.b.pin'], ['a.0.b', '1.pin']];
    const below = [
      ['a', 'b', 'pin.x'],
      ['a', 'b.pin.x.y'],
      ['a.b.pin.0'],
      ['0.a.b', 'pin.1.x'],
      ['a.b.pin', 'x.y'],
    ];
    const names = fc.constantFrom(...onPath, ...below);
    fc.assert(
      fc.property(
        names,
        fc.array(around, { minLength: 4, maxLength: 4 }),
        fc.constantFrom('drop' as const, 'mask' as const, 'deny' as const),
        (path, wraps, form) => {
          const stored = path.reduceRight<unknown>(
            (value, name, index) =>
              (wraps[index] as (value: unknown) => unknown)({ [name]: value, city: 'C' }),
            wraps[3]?.('S3CRET'),
          );
          const row = shortenText({ address: stored }, { 'address.a.b.pin': form });
          expect(JSON.stringify(row)).not.toContain('S3CRET');
          expect(JSON.stringify(row)).toContain('"city":"C"');
        },
      ),
    );
  });

  it('shows neither the end nor a pseudonym of a part that was stored under a name of its own', () => {
    const address = { 'card.number': '4111111111111234' };
    for (const form of [{ mask: { keep: 4 } }, 'hash'] satisfies MasksConfig[string][]) {
      const row = shortenText({ address }, { 'address.card': form });
      expect(row['address']).toMatchObject({ 'card.number': MASKED_TEXT });
    }
  });

  it('keeps names that only begin like a masked path', () => {
    const address = { 'card.issuer': 'I', cardinal: 'N', 'cardinal.number': 1 };
    const row = shortenText({ address }, { 'address.card.number': 'drop' });
    expect(row).toEqual({ address });
  });

  it('masks an object with very many numbers as names, each of them', () => {
    const entries = Array.from({ length: 50_000 }, (_, index) => [index, { city: 'C', street: 'S' }]);
    const { address } = shortenText({ address: Object.fromEntries(entries) }, { 'address.street': 'mask' });
    const values = Object.values(address as Record<string, { street?: unknown }>);
    expect(values).toHaveLength(50_001);
    expect(values.filter((value) => value.street !== MASKED_TEXT)).toEqual([MASKED_TEXT]);
  });

  it('keeps a member named `__proto__` a member, masked like any other', () => {
    const address: unknown = JSON.parse('{"0":{"__proto__":{"street":"S"}},"__proto__":{"street":"S"}}');
    const row = shortenText({ address }, { 'address.__proto__.street': 'mask' });
    expect(JSON.stringify(row)).toBe(
      '{"address":{"0":{"__proto__":{"street":"***"}},"__proto__":{"street":"***"}}}',
    );
  });

  it('names the whole of an object by what is left of it once its parts are masked', () => {
    const masks: MasksConfig = { address: 'hash', 'address.street': 'mask' };
    expect(shortenText({ address: { street: 'S' } }, masks)).toEqual(
      shortenText({ address: { street: 'T' } }, masks),
    );
  });

  it('never tells two values apart whose mask keeps nothing', () => {
    const members = fc.dictionary(fc.constantFrom('street', 'city', 'name'), fc.jsonValue());
    fc.assert(
      fc.property(
        members,
        fc.option(fc.jsonValue(), { nil: undefined }),
        fc.option(fc.jsonValue(), { nil: undefined }),
        (rest, one, other) => {
          const row = (value: unknown) =>
            JSON.stringify(
              shortenText({ ...(value !== undefined && { pin: value }), card: rest }, { pin: 'mask' }),
            );
          expect(row(one)).toBe(row(other));
        },
      ),
    );
  });
});

describe('masks and tiers', () => {
  const masks: MasksConfig = { pin: { readonly: 'drop', write: 'mask', admin: 'none' } };
  it('are those of the agent, whatever its identity', () => {
    const row = { pin: 'x' };
    expect([
      shortenText(row, masks),
      shortenText(row, masks, 'write'),
      shortenText(row, masks, 'admin'),
    ]).toEqual([{}, { pin: MASKED_TEXT }, row]);
  });

  it('never show a sub-agent what those above it do not see', () => {
    const admin = compileAgentDefinition('admin', { permissions: 'admin' });
    const compiled = compileMasks(masks, '', []);
    const given = { masks: compiled, listed: null, known: KNOWN, isWithheld: () => false };
    const below = { ...admin, outer: compileAgentDefinition('outer', { permissions: 'write' }) };
    expect(findMaskedColumns(given, admin)).toBeNull();
    expect([...(findMaskedColumns(given, below)?.masks.shown ?? [])]).toEqual(['pin']);
    expect(findMaskedColumns(given, below)?.readable.has('pin')).toBe(false);
  });

  it('never show what the allowlist leaves out', () => {
    const given = { masks: compileMasks({ pin: 'hash' }, '', []), listed: new Set(['name']), known: KNOWN };
    const columns = findMaskedColumns({ ...given, isWithheld: () => false }, compileAgentDefinition('x'));
    expect([...(columns?.masks.shown ?? []), ...(columns?.masks.fetchable ?? [])]).toEqual(['name']);
  });

  it('fetch no value that a fixed text stands for', () => {
    const all: MasksConfig = { pin: 'mask', card: 'drop', name: 'hash', address: { mask: { keep: 2 } } };
    const given = { masks: compileMasks(all, '', []), listed: null, known: KNOWN, isWithheld: () => false };
    const { masks: columns } = findMaskedColumns(given, compileAgentDefinition('x')) ?? { masks: null };
    expect([...(columns?.fetchable ?? [])].sort()).toEqual(['address', 'name', 'objectId']);
  });
});

describe('pseudonyms', () => {
  const names = new Pseudonyms('a-secret-of-at-least-32-characters!!');
  const scope = { domain: null, className: 'Card', path: 'pin', tenant: 'acme', acrossTenants: false };
  it('are the same for the same value of a field, written in any order', () => {
    expect(names.of({ a: 1, b: 2 }, scope)).toBe(names.of({ b: 2, a: 1 }, scope));
    expect(names.of(undefined, scope)).toBe(names.of(null, scope));
    expect(names.of('x', scope)).toMatch(/^h_[A-Za-z0-9_-]{22}$/);
  });

  it.each([
    ['another field', { path: 'card' }],
    ['another class', { className: 'Purse' }],
    ['another tenant', { tenant: 'globex' }],
    ['no tenant', { tenant: null }],
    ['a domain named like the class', { domain: 'Card' }],
    ['all tenants', { acrossTenants: true }],
  ])('do not join with those of %s', (_, other) => {
    expect(names.of('x', { ...scope, ...other })).not.toBe(names.of('x', scope));
  });

  it('join where a domain or all tenants are said to share them', () => {
    const person = { ...scope, domain: 'person' };
    expect(names.of('x', person)).toBe(names.of('x', { ...person, path: 'card', className: 'Purse' }));
    const everywhere = { ...scope, acrossTenants: true };
    expect(names.of('x', everywhere)).toBe(names.of('x', { ...everywhere, tenant: 'globex' }));
  });

  it('never come out the same for different values, nor under another key', () => {
    const others = new Pseudonyms('another-secret-of-at-least-32-characters');
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const same = names.of(one, scope) === names.of(other, scope);
        expect(same).toBe(sameJson(one, other));
        expect(others.of(one, scope)).not.toBe(names.of(one, scope));
      }),
    );
  });
});

function sameJson(one: unknown, other: unknown): boolean {
  return stable(one) === stable(other);
}

function stable(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    member !== null && typeof member === 'object' && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
