import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, type AgentDefinitionOptions, compileAgentDefinition, refusals } from '#core';
import { createBoundClass } from '../compile/bound-class.fixture.js';
import type { ClassConfig } from '../compile/policy-config.js';
import { findMaskedColumns } from '../masking/column-masks.js';
import type { ClassAccess } from '../model/class-access.js';
import type { IndexSchema } from '../model/class-schema.js';
import { INTERNAL_FIELDS } from '../model/field-names.js';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { planWrite, type WriteContext } from './plan-write.js';

const pointer = (className: string, objectId = 'x1') => ({ __type: 'Pointer', className, objectId });

interface Setting {
  readonly operation?: WriteContext['operation'];
  readonly tenant?: WriteContext['tenant'];
  readonly config?: ClassConfig;
  readonly agent?: AgentDefinitionOptions;
  readonly indexes?: readonly IndexSchema[];
}

function plan(
  className: string,
  fields: unknown,
  { operation = 'create', tenant = null, config = {}, agent, indexes = [] }: Setting = {},
) {
  return planWrite(fields, {
    agent: new Agent({ definition: compileAgentDefinition('x', agent), principal: 'p' }),
    access: maskedAccess(className, config),
    policy: createBoundClass(className, config),
    operation,
    tenant,
    indexes,
    findSchema: () => undefined,
    judgeClass: (target) => {
      const judged = shopReach.reach(target, 'pointer');
      return 'gate' in judged ? judged : null;
    },
  });
}

/** The class of the shop with the masks of `config`, as the agent of a plan is shown it. */
function maskedAccess(className: string, config: ClassConfig): ClassAccess {
  const access = music(className);
  const { masks } = createBoundClass(className, config);
  const known = new Set(access.schema?.fields.keys() ?? []);
  const given = { masks, listed: null, known, isWithheld: () => false };
  return { ...access, ...findMaskedColumns(given, compileAgentDefinition('x')) };
}

const refusal = (className: string, fields: unknown, setting?: Setting) =>
  catchRefusal(() => plan(className, fields, setting));

describe('a text with half of a surrogate pair', () => {
  const torn = fc
    .tuple(fc.string(), fc.integer({ min: 0xd800, max: 0xdfff }), fc.string())
    .map(([before, half, after]) => `${before}x${String.fromCharCode(half)}x${after}`);
  const places: ((text: string) => unknown)[] = [
    (title) => ({ title }),
    (tag) => ({ tags: ['x', tag] }),
    (mood) => ({ meta: { a: [{ mood }] } }),
    (name) => ({ meta: { [name]: 1 } }),
    (tag) => ({ tags: { __op: 'Add', objects: [tag] } }),
  ];

  it('is never written, wherever it stands', () => {
    fc.assert(
      fc.property(torn, fc.constantFrom(...places), (text, place) => {
        for (const operation of ['create', 'update'] as const)
          expect(refusal('Song', place(text), { operation })).toMatchObject({
            code: 'invalid_argument',
            message: expect.stringContaining('half of a surrogate pair') as string,
          });
      }),
    );
  });

  it('is told from whole characters', () => {
    expect(plan('Song', { title: 'a 😀 b' }).fields).toEqual({ title: 'a 😀 b' });
  });
});

describe('the plan of a write', () => {
  it('takes a date as an answer shows it, and says what to write instead of any other text', () => {
    for (const operation of ['create', 'update'] as const) {
      const { fields } = plan('Song', { releasedOn: '2026-01-01T00:00:00Z' }, { operation });
      expect(fields).toEqual({ releasedOn: { __type: 'Date', iso: '2026-01-01T00:00:00.000Z' } });
      expect(refusal('Song', { releasedOn: 'tomorrow' }, { operation })?.message).toMatch(
        /releasedOn takes a Date, not a String; write it as \{"__type":"Date"/,
      );
    }
  });

  it('resolves spellings and aliases to wire names', () => {
    const { fields, added } = plan('Song', { play_count: 3, externalStatus: 'x', Title: 'T' });
    expect(fields).toEqual({ playCount: 3, ExtStatus: 'x', title: 'T' });
    expect(added.size).toBe(0);
  });

  it('keeps only the members of a typed value', () => {
    const artist = { ...pointer('Artist'), secret: 1 };
    const released = { __type: 'Date', iso: '2026-01-01', more: 1 };
    expect(plan('Song', { artist, releasedOn: released }).fields).toEqual({
      artist: pointer('Artist'),
      releasedOn: { __type: 'Date', iso: '2026-01-01T00:00:00.000Z' },
    });
  });

  it('takes a Date of the language for a Date', () => {
    expect(plan('Note', { dueOn: new Date(0) }).fields).toEqual({
      dueOn: { __type: 'Date', iso: '1970-01-01T00:00:00.000Z' },
    });
  });

  it('names the columns that a class without an allowlist does not have yet', () => {
    const { added } = plan('Note', { body: 'x', rating: 4, at: pointer('Song'), nothing: null });
    expect([...added]).toEqual([
      ['rating', { type: 'Number' }],
      ['at', { type: 'Pointer', targetClass: 'Song' }],
    ]);
  });

  it('holds a new column to its declared type', () => {
    const config = { properties: { rating: { type: 'Number' } } };
    expect(refusal('Note', { rating: 'four' }, { config })?.message).toContain(
      'rating takes a Number, not a String',
    );
    expect(refusal('Note', { rating: 4 }, { config })).toBeNull();
  });

  it('holds list members and appended values to the declared ones', () => {
    const config = { properties: { tags: { enum: { live: '', '7': '' } } } };
    const tags = (value: unknown) => refusal('Song', { tags: value }, { config })?.message ?? null;
    expect(tags(['live', 7])).toBeNull();
    expect(tags({ __op: 'AddUnique', objects: ['live'] })).toBeNull();
    expect(tags({ __op: 'Delete' })).toBeNull();
    for (const __op of [{ toString: false }, ['Delete'], null, 'toString'])
      expect(tags({ __op })).toContain('__op must be one of');
    expect(tags(['live', 'x'])).toContain('tags must be one of');
    expect(tags({ __op: 'Add', objects: [{}] })).toContain('tags must be one of');
  });

  it('puts the tenant into a new row and takes its repetition out of a change', () => {
    const tenant = { field: 'orgId', value: 'acme' };
    expect(plan('Song', { title: 'x' }, { tenant }).fields).toEqual({ title: 'x', orgId: 'acme' });
    const change: Setting = { tenant, operation: 'update' };
    expect(plan('Song', { title: 'x', org_id: 'acme' }, change).fields).toEqual({ title: 'x' });
    expect(refusal('Song', { orgId: 'acme' }, change)?.message).toContain('nothing that can be changed');
    for (const operation of ['create', 'update'] as const)
      for (const orgId of ['globex', null, { __op: 'Delete' }, ['acme'], 'ACME'])
        expect(refusal('Song', { title: 'x', orgId }, { tenant, operation })).toMatchObject({
          code: 'access_denied',
          details: { kind: 'tenant_scope' },
        });
  });

  it('asks the class gate about every pointer, however deep', () => {
    for (const value of [pointer('Vault'), [pointer('Vault')], { a: { b: [pointer('Vault')] } }])
      expect(refusal('Note', { extra: value })).toMatchObject({ details: { kind: 'hidden_class' } });
    expect(refusal('Note', { extra: { __op: 'Add', objects: [pointer('Ledger')] } })).toMatchObject({
      details: { kind: 'class_filter' },
    });
  });

  it('says which fields may be named when one is outside the allowlist', () => {
    expect(refusal('Song', { royalty: 1 })).toMatchObject({
      code: 'access_denied',
      details: { kind: 'field_denied', denied_field: 'royalty' },
    });
  });

  it('needs a name for a new user, and an admin for the names of users', () => {
    const admin: AgentDefinitionOptions = { permissions: 'admin' };
    expect(refusal('_User', { email: 'a@b.c' }, { agent: admin })?.message).toContain('username is required');
    expect(refusal('_User', { username: 'ada' }, { agent: admin })).toBeNull();
    for (const name of ['username', 'emailVerified', 'email_verified'])
      expect(refusal('_User', { [name]: true }, { agent: { permissions: 'write' } })?.message).toContain(
        'may not be written',
      );
    expect(refusal('_User', { password: 'x' }, { agent: admin })?.code).toBe('invalid_argument');
  });

  it('asks for required fields when a row is made, and does not let them be cleared', () => {
    const access = music('Note');
    const fields = new Map([
      ...(access.schema?.fields ?? []),
      ['body', { type: 'String' as const, required: true }],
    ]);
    const context: WriteContext = {
      agent: new Agent({ definition: compileAgentDefinition('x'), principal: 'p' }),
      access: { ...access, schema: { className: 'Note', indexes: [], classLevelPermissions: null, fields } },
      policy: createBoundClass('Note', {}),
      operation: 'create',
      tenant: null,
      indexes: [],
      findSchema: () => undefined,
      judgeClass: () => null,
    };
    for (const given of [{ dueOn: null }, { body: null }, { body: { __op: 'Delete' } }])
      expect(catchRefusal(() => planWrite(given, context))?.message).toContain('body is required');
    const update = { ...context, operation: 'update' as const };
    expect(catchRefusal(() => planWrite({ body: null }, update))?.message).toContain('body is required');
    expect(catchRefusal(() => planWrite({ dueOn: null }, update))).toBeNull();
    const hidden = { ...context, access: { ...context.access, readable: new Set(['dueOn']) } };
    expect(catchRefusal(() => planWrite({ dueOn: null }, hidden))?.message).not.toContain('body');
  });

  it('never names a withheld class in a refusal, whatever is written', () => {
    const context: WriteContext = {
      agent: new Agent({ definition: compileAgentDefinition('x'), principal: 'p' }),
      access: music('Song'),
      policy: createBoundClass('Song', {}),
      operation: 'update',
      tenant: null,
      indexes: [],
      findSchema: () => undefined,
      judgeClass: (target) => (target === 'Artist' ? refusals.hiddenClass(target) : null),
    };
    const createRefused = (value: unknown) =>
      catchRefusal(() => planWrite({ artist: value }, context))?.message ?? '';
    expect(createRefused({ __op: 'Increment', amount: 1 })).toContain(
      'artist takes a Pointer, not a Number; write it as',
    );
    const value = fc.oneof(
      json,
      fc.constant(pointer('Song')),
      fc.array(json, { maxLength: 2 }).map((objects) => ({ __op: 'Add', objects })),
    );
    fc.assert(
      fc.property(value, (given) => {
        expect(createRefused(given)).not.toContain('Artist');
      }),
    );
  });

  it('bounds nesting before it looks at anything else', () => {
    let nested: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) nested = [nested];
    expect(refusal('Note', { extra: nested })).toMatchObject({ code: 'invalid_argument' });
  });
});

const json = fc.jsonValue({ maxDepth: 5 });
const hostileKey = fc.constantFrom(
  ...INTERNAL_FIELDS,
  'acl',
  '_auth_data_x',
  '__proto__',
  '_bsontype',
  'objectId',
  'created_at',
  'className',
  '__type',
  'a.b',
  '_x',
  '',
);

describe('no write', () => {
  /** Every key of every object in a value. */
  const keysOf = (value: unknown): string[] =>
    value !== null && typeof value === 'object'
      ? Object.entries(value).flatMap(([key, member]) => [
          ...(Array.isArray(value) ? [] : [key]),
          ...keysOf(member),
        ])
      : [];

  it('carries an operator of the database, wherever it stood', () => {
    const operator = fc.string({ minLength: 1 }).map((name) => `$${name}`);
    const wraps = fc.array(
      fc.constantFrom<(inner: unknown) => unknown>(
        (x) => [x],
        (x) => ({ k: x }),
      ),
      {
        maxLength: 5,
      },
    );
    fc.assert(
      fc.property(operator, json, wraps, fc.boolean(), (key, value, layers, inOperation) => {
        const hidden = layers.reduce((inner, wrap) => wrap(inner), { [key]: value } as unknown);
        const field = inOperation ? { __op: 'Add', objects: [hidden] } : hidden;
        expect(refusal('Note', { extra: field })).toMatchObject({ code: 'security_blocked', opaque: true });
      }),
    );
    expect(refusal('Note', { $set: { body: 'x' } })).toMatchObject({ code: 'security_blocked' });
  });

  it('names what the store or the server keeps for itself', () => {
    fc.assert(
      fc.property(hostileKey, json, (key, value) => {
        const given = Object.fromEntries([
          ['body', 'x'],
          [key, value],
        ] as [string, unknown][]);
        const code = refusal('Note', given)?.code;
        expect(['invalid_argument', 'security_blocked']).toContain(code);
      }),
    );
  });

  it('throws anything but a refusal, or plans a key that was not judged', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.oneof(fc.constantFrom('body', 'extra', 'dueOn'), fc.string()), json),
        (fields) => {
          let planned: object | null = null;
          const refused = catchRefusal(() => {
            planned = plan('Note', fields).fields;
          });
          if (refused) return;
          for (const key of keysOf(planned)) {
            expect(key).not.toMatch(/^\$|\.|\0/);
            expect(INTERNAL_FIELDS).not.toContain(key);
          }
          // Inside a value it is an ordinary member.
          for (const column of Object.keys(planned ?? {})) expect(column).not.toMatch(/^_/);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('a write beside masked fields', () => {
  const config = { masks: { genre: 'mask', 'meta.mood': 'mask', tags: 'drop', body: 'mask' } } as const;
  const kind = (fields: object, setting: Setting = {}) =>
    refusal('Song', fields, { config, ...setting })?.details?.kind;

  it.each([
    ['a masked field', { genre: 'jazz' }, 'masked_field'],
    ['an object of which a part is masked', { meta: { mood: 'blue' } }, 'masked_field'],
    ['a dropped field, as one that does not exist', { tags: ['x'] }, 'field_denied'],
    ['a masked field that the class does not have yet', { body: 'x' }, 'masked_field'],
    ['a field in clear', { title: 'T' }, undefined],
  ])('is judged by its fields: %s', (_, fields, expected) => {
    expect(kind(fields)).toBe(expected);
    expect(kind(fields, { operation: 'update' })).toBe(expected);
  });

  const index = (more: object): Setting => ({
    indexes: [{ name: 'i', fields: ['genre', 'title'], unique: true, ...more }],
  });
  it.each<[string, object, Setting, string | undefined]>([
    ['takes part in', { title: 'T' }, index({}), 'masked_field'],
    ['takes part in, though sparse', { title: 'T' }, index({ sparse: true }), 'masked_field'],
    ['may take part in', { title: 'T' }, index({ unique: false, uniquenessUnknown: true }), 'masked_field'],
    ['enters with its missing values', { playCount: 1 }, index({}), 'masked_field'],
    ['may enter by any other field', { playCount: 1 }, index({ partial: true }), 'masked_field'],
    ['does not enter', { playCount: 1 }, index({ sparse: true }), undefined],
    ['cannot collide in', { title: 'T' }, index({ unique: false }), undefined],
  ])('meets no unique index over a masked field that it %s', (_, fields, setting, expected) => {
    expect(kind(fields, setting)).toBe(expected);
  });

  it('changes no field of such an index, and may change any other', () => {
    expect(kind({ title: 'T' }, { ...index({}), operation: 'update' })).toBe('masked_field');
    expect(kind({ playCount: 1 }, { ...index({}), operation: 'update' })).toBeUndefined();
  });
});
