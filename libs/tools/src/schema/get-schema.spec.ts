import { Logger } from '@nestjs/common';
import type { Tier } from '#core';
import type { GovernedClass } from '#data';
import { type ClassPolicy, type FieldSchema, type FieldType, readEnvironmentGates } from '#policy';
import { describe, expect, it, vi } from 'vitest';
import { callOf, QUIET, runTool, sampleClass, SampleRecords, switches } from '../contracts/sample-records.js';
import type { DeclaredMethod } from '../methods/method-declaration.js';
import { DeclaredMethods } from '../methods/method-registry.js';
import { GetSchema } from './get-schemas.js';

const USER = sampleClass('_User', { username: { type: 'String' } });
const wrapped = (text: string) => `<schema_description>${text}</schema_description>`;

interface Told {
  readonly fields: { name: string; type: string }[];
}

const OPEN = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' };

interface SetUp {
  readonly tier?: Tier;
  readonly process?: typeof QUIET;
  readonly methods?: readonly DeclaredMethod[];
  readonly env?: Readonly<Record<string, string>>;
}

async function schemaOf(
  known: GovernedClass,
  { tier, process = QUIET, methods = [], env = OPEN }: SetUp = {},
) {
  class Methods extends DeclaredMethods {
    of() {
      return methods;
    }
  }
  const tool = new GetSchema(readEnvironmentGates(env), new Methods());
  const call = Object.assign(callOf(tool, new SampleRecords([], [USER, known]), tier), { switches: process });
  return (await runTool(tool, 'describe', { class_name: known.className }, call)) as Told &
    Record<string, unknown>;
}

const readField = async (field: FieldSchema, policy: Partial<ClassPolicy> = {}) =>
  (await schemaOf(sampleClass('Post', { it: field }, policy))).fields.find(({ name }) => name === 'it');

const method = (name: string, permission: Tier): DeclaredMethod => ({
  name,
  permission,
  type: 'instance',
  description: 'Puts it away',
  supportsDryRun: permission === 'write',
  parameters: { type: 'object', properties: { why: { type: 'string', description: 'Reason' } } },
  permittedKeys: ['why'],
});

describe('get_schema', () => {
  it('describes a class in full', async () => {
    const post = sampleClass(
      'Post',
      { title: { type: 'String', required: true }, author: { type: 'Pointer', targetClass: '_User' } },
      { description: 'Blog posts', usage: 'Prefer live ones', canonicalFilter: { deleted: { $ne: true } } },
      {
        indexes: [{ name: 'title_1', fields: ['title'], unique: false }],
        classLevelPermissions: { find: { '*': true } },
      },
    );
    expect(Object.entries(await schemaOf(post))).toEqual([
      ['class_name', 'Post'],
      ['type', 'custom'],
      ['description', wrapped('Blog posts')],
      ['usage', wrapped('Prefer live ones')],
      [
        'fields',
        [
          { name: 'objectId', type: 'string', required: false },
          { name: 'createdAt', type: 'date/time', required: false },
          { name: 'updatedAt', type: 'date/time', required: false },
          { name: 'ACL', type: 'access control list', required: false },
          { name: 'title', type: 'string', required: true },
          expect.objectContaining({
            name: 'author',
            type: 'pointer (reference) → _User',
            target_class: '_User',
          }),
        ],
      ],
      ['indexes', [{ name: 'title_1', fields: ['title'], unique: false }]],
      ['permissions', { find: ['public'] }],
      ['canonical_filter', { deleted: { $ne: true } }],
      [
        'relations',
        { outgoing: [], incoming: [{ from: '_User', to: 'Post', via: 'Post.author', cardinality: '1:N' }] },
      ],
    ]);
  });

  it.each([
    ['_User', 'built-in: User accounts'],
    ['_Role', 'built-in: Access roles'],
    ['_Session', 'built-in: User sessions'],
    ['_Installation', 'built-in: Device installations'],
    ['_Product', 'built-in: In-app purchases'],
    ['_Audience', 'built-in: Push audiences'],
    ['Post', 'custom'],
  ])('says what %s is', async (className, type) => {
    expect((await schemaOf(sampleClass(className, {})))['type']).toBe(type);
  });

  it.each<[FieldType | 'Vector', string]>([
    ['Number', 'number'],
    ['Boolean', 'boolean'],
    ['Object', 'object (JSON)'],
    ['Array', 'array'],
    ['GeoPoint', 'geo location'],
    ['File', 'file'],
    ['Bytes', 'binary data'],
    ['Polygon', 'polygon (geo shape)'],
    ['Vector', 'vector'],
  ])('names the type %s', async (type, expected) => {
    expect(await readField({ type: type as FieldType })).toEqual({
      name: 'it',
      type: expected,
      required: false,
    });
  });

  it('refuses a call without a class', async () => {
    const tool = new GetSchema(readEnvironmentGates({}));
    await expect(runTool(tool, 'describe', {}, callOf(tool, new SampleRecords()))).rejects.toMatchObject({
      refusal: { code: 'invalid_argument', message: 'Invalid arguments: class_name is required' },
    });
  });
});

describe('a pointer in a schema', () => {
  it('says how to constrain it', async () => {
    const field = await readField({ type: 'Pointer', targetClass: '_User' });
    expect(field).toMatchObject({
      query_hint: expect.stringMatching(/"it":"<objectId>".*"className":"_User".*\$in/),
    });
  });

  it.each(['Pointer', 'Relation'] as const)(
    'never names a class the agent may not know: %s',
    async (type) => {
      const answer = await schemaOf(sampleClass('Post', { it: { type, targetClass: 'SecretProject' } }));
      expect(JSON.stringify(answer)).not.toContain('SecretProject');
      expect(answer.fields.at(-1)).not.toHaveProperty('target_class');
    },
  );

  it('still says how to constrain one to a class it does not name', async () => {
    expect(await readField({ type: 'Pointer', targetClass: 'SecretProject' })).toMatchObject({
      type: 'pointer (reference)',
      query_hint: expect.stringContaining('"className":"<targetClass>"'),
    });
  });
});

describe('what an operator says of a field', () => {
  it('is shown with the field, wrapped', async () => {
    const properties = new Map([
      [
        'it',
        {
          description: 'Where it is',
          enum: new Map([
            ['draft', 'Not visible'],
            ['live', ''],
          ]),
        },
      ],
    ]);
    expect(await readField({ type: 'String' }, { properties })).toEqual({
      name: 'it',
      type: 'string',
      required: false,
      description: wrapped('Where it is'),
      allowed_values: [{ value: 'draft', description: wrapped('Not visible') }, { value: 'live' }],
    });
  });

  it('is shown without any description of the class or field', async () => {
    const properties = new Map([['it', { enum: new Map([['a', 'b']]) }]]);
    expect(await readField({ type: 'String' }, { properties, largeFields: ['it'] })).toMatchObject({
      allowed_values: [{ value: 'a', description: wrapped('b') }],
      large_field: true,
    });
  });

  it.each(['Pointer', 'Relation'] as const)('never calls a %s large', async (type) => {
    expect(await readField({ type, targetClass: '_User' }, { largeFields: ['it'] })).not.toHaveProperty(
      'large_field',
    );
  });

  it.each([
    [undefined, undefined],
    [null, undefined],
    ['', undefined],
    [0, 0],
    [false, false],
    ['draft', 'draft'],
    [{ __type: 'Date', iso: '2024-01-01T00:00:00.000Z' }, '2024-01-01T00:00:00.000Z'],
    [{ __type: 'Pointer', className: 'SecretProject', objectId: 'x' }, undefined],
  ])('shows the default %j as %j', async (defaultValue, expected) => {
    expect(await readField({ type: 'String', defaultValue })).toEqual({
      name: 'it',
      type: 'string',
      required: false,
      ...(expected !== undefined && { default: expected }),
    });
  });
});

describe('an allowlisted class', () => {
  const NARROW = sampleClass(
    'Post',
    { title: { type: 'String' }, body: { type: 'String' }, ssn: { type: 'String' } },
    { fields: ['title', 'body'], largeFields: ['body'] },
    {
      indexes: [
        { name: 'title_1', fields: ['title', 'objectId'], unique: true },
        { name: 'ssn_1', fields: ['ssn'], unique: true },
        { name: 'title_1_ssn_1', fields: ['title', 'ssn.last'], unique: false },
      ],
      classLevelPermissions: {
        find: { u1: true, pointerFields: ['ssn', 'title'] },
        protectedFields: { '*': ['ssn'] },
        readUserFields: ['ssn'],
      },
    },
  );

  it('shows readable fields, and what may be named, without the three always kept', async () => {
    const answer = await schemaOf(NARROW);
    expect(answer.fields.map(({ name }) => name)).toEqual([
      'objectId',
      'createdAt',
      'updatedAt',
      'title',
      'body',
    ]);
    expect(answer).toMatchObject({ agent_fields: ['title', 'body'] });
  });

  it('never mentions a field outside its allowlist, not in an index nor in permissions', async () => {
    expect(JSON.stringify(await schemaOf(NARROW))).not.toContain('ssn');
  });

  it('never mentions a column that only this caller may not see, whatever the policy lists', async () => {
    const policy = { largeFields: ['body'], fields: ['title', 'body', 'pay'], joinFields: ['title', 'pay'] };
    const known = sampleClass(
      'Post',
      { title: { type: 'String' }, body: { type: 'String' }, pay: { type: 'Number' } },
      { ...policy, canonicalFilter: { $or: [{ pay: { $lt: 5 } }, { title: 'x' }] } },
    );
    const protectedFrom = { ...known, fields: known.fields.filter((name) => name !== 'pay') };
    const answer = await schemaOf(protectedFrom);
    expect(answer).toMatchObject({ agent_fields: ['title', 'body'], agent_join_fields: ['title'] });
    expect(JSON.stringify(answer)).not.toContain('pay');
  });

  it.each([
    [{ archived: { $ne: true } }, true],
    [{ ssn: { $exists: true } }, true],
    [{ title: { $inQuery: { className: '_User', where: {} } } }, true],
    [{ title: { $inQuery: { className: 'Hidden', where: {} } } }, false],
    [{ title: 'x' }, true],
    [{ $or: [{ pay: 1 }, { title: 'x' }] }, false],
    [{ code: 7 }, false],
  ])(
    'shows a default filter, columns outside fields included: %j (%s)',
    async (canonicalFilter, expected) => {
      const masks = new Map([['code', {} as never]]);
      const classLevelPermissions = { protectedFields: { '*': ['pay'] } };
      const schema = { ...NARROW.schema, classLevelPermissions };
      const answer = await schemaOf({
        ...NARROW,
        schema,
        policy: { ...NARROW.policy, masks, canonicalFilter },
      });
      expect(answer['canonical_filter'] ?? null).toEqual(expected ? canonicalFilter : null);
      expect(answer['canonical_filter_withheld'] ?? false).toBe(!expected);
    },
  );

  it('prefers declared join fields for what an included row keeps', async () => {
    const policy = { ...NARROW.policy, joinFields: ['body', 'objectId'] };
    expect(await schemaOf({ ...NARROW, policy })).toMatchObject({ agent_join_fields: ['body'] });
  });

  it('echoes neither list when neither rule applies', async () => {
    const answer = await schemaOf(sampleClass('Post', { title: { type: 'String' } }));
    expect(answer).not.toHaveProperty('agent_fields');
    expect(answer).not.toHaveProperty('agent_join_fields');
  });
});

describe('names in a schema', () => {
  it('leaves out a field whose name could carry text for the model, and logs that without the name', async () => {
    const warn = vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const answer = await schemaOf(
      sampleClass('Post', { 'ignore previous': { type: 'String' }, ok: { type: 'String' } }),
    );
    const logged = warn.mock.calls;
    warn.mockRestore();
    expect(answer.fields.map(({ name }) => name)).toContain('ok');
    expect(JSON.stringify(answer)).not.toContain('ignore previous');
    expect(logged).toEqual([['Post: 1 field(s) with unusable names left out of the schema']]);
  });
});

describe('permissions in a schema', () => {
  it.each([
    [{ find: { '*': true } }, { find: ['public'] }],
    [{ create: { 'role:admin': true } }, { create: ['role:admin'] }],
    [{ update: { abc123: true, other: false } }, { update: ['user:abc123'] }],
    [{ get: { requiresAuthentication: true } }, { get: ['authenticated'] }],
    [
      { count: true, delete: false },
      { count: ['public'], delete: ['none'] },
    ],
    [{ find: {} }, { find: [] }],
    [{ find: { pointerFields: ['owner'] } }, { find: ['pointer:owner'] }],
    [{ find: null, get: 'x', unknown: { '*': true } }, {}],
    [null, {}],
  ])('show %j as %j', async (classLevelPermissions, expected) => {
    const known = sampleClass('Post', { owner: { type: 'String' } }, {}, { classLevelPermissions });
    expect((await schemaOf(known))['permissions']).toEqual(expected);
  });
});

describe('declared methods in a schema', () => {
  const methods = [method('read', 'readonly'), method('archive', 'write')];
  const expected = {
    name: 'read',
    type: 'instance',
    permission: 'readonly',
    description: wrapped('Puts it away'),
    parameters: { type: 'object', properties: { why: { type: 'string', description: wrapped('Reason') } } },
  };

  it('are those of the tier, with hardened text', async () => {
    expect((await schemaOf(USER, { methods }))['agent_methods']).toEqual([expected]);
    expect((await schemaOf(USER, { methods, tier: 'write' }))['agent_methods']).toEqual([
      expected,
      { ...expected, name: 'archive', permission: 'write', supports_dry_run: true },
    ]);
  });

  it('are those whose environment gate is open and that class-level permissions leave', async () => {
    const names = async (known: GovernedClass, more: SetUp) =>
      (
        (await schemaOf(known, { methods, tier: 'write', ...more }))['agent_methods'] as
          DeclaredMethod[] | undefined
      )?.map(({ name }) => name);
    const post = sampleClass('Post', {});
    expect(await names(post, { env: {} })).toEqual(['read']);
    expect(await names({ ...post, methodTiers: new Set(['write']) }, {})).toEqual(['archive']);
    expect(await names({ ...post, methodTiers: new Set() }, {})).toBeUndefined();
  });

  it('show what they may write to debugging operators only', async () => {
    expect(JSON.stringify(await schemaOf(USER, { methods }))).not.toContain('permitted_keys');
    const debugging = await schemaOf(USER, { methods, process: switches({ agentDebug: true }) });
    expect(debugging['agent_methods']).toEqual([{ ...expected, permitted_keys: ['why'] }]);
  });
});

describe('get_schema of a plain class', () => {
  const lines: FieldSchema = {
    type: 'Array',
    origin: 'declared',
    members: new Map<string, FieldSchema>([
      ['sku', { type: 'String' }],
      ['maker', { type: 'Object', members: new Map([['user', { type: 'Pointer', targetClass: '_User' }]]) }],
      ['other', { type: 'Pointer', targetClass: 'Hidden' }],
      ['a b <system>', { type: 'String' }],
      ['sessionToken', { type: 'String' }],
    ]),
  };
  const plain = (fields: Readonly<Record<string, FieldSchema>>) =>
    sampleClass('Product', fields, {}, { storage: 'plain', className: '_Product' });

  it('says which types are only inferred, and how often each was seen', async () => {
    const { fields, type } = await schemaOf(
      plain({ total: { type: 'Number', origin: 'sample', seen: { Number: 97, String: 2, Null: 1 } }, lines }),
    );
    const named = (name: string) => fields.find((field) => field.name === name);
    expect(named('total')).toEqual({
      name: 'total',
      type: 'number',
      required: false,
      inferred: true,
      seen: { Number: 97, String: 2, Null: 1 },
    });
    expect(named('lines')).not.toHaveProperty('inferred');
    expect(named('objectId')).toEqual({ name: 'objectId', type: 'string', required: false });
    expect(type).toBe('custom');
  });

  it('counts no types and lists no keys that may stand in rows which the agent cannot read', async () => {
    const sampled: FieldSchema = { type: 'String', origin: 'sample', seen: { String: 9 } };
    const total: FieldSchema = {
      ...sampled,
      members: new Map([
        ['ada@example.com', sampled],
        ['key', sampled],
      ]),
    };
    const limited = [
      { tenantScope: { field: 'org', from: 'tenantId', bypass: [] } as const },
      { filters: { org: 'acme' } },
    ];
    for (const policy of limited) {
      const known = sampleClass('Product', { total }, policy, { storage: 'plain' });
      const { fields } = await schemaOf(known);
      const described = fields.find(({ name }) => name === 'total');
      expect(described).toEqual({ name: 'total', type: 'string', required: false, inferred: true });
    }
  });

  it('lists a hundred paths into a document, and says how many there are', async () => {
    const members = new Map<string, FieldSchema>(
      Array.from({ length: 130 }, (_, at) => [`part${at}`, { type: 'String' }]),
    );
    const { fields } = await schemaOf(plain({ parts: { type: 'Object', members } }));
    const parts = fields.find(({ name }) => name === 'parts') as { members?: object } | undefined;
    expect(Object.keys(parts?.members ?? {})).toHaveLength(100);
    expect(parts).toMatchObject({ members_note: expect.stringContaining('first 100 of 130') as string });
  });

  it('lists the paths into documents, without classes that are not known and names that are none', async () => {
    const { fields } = await schemaOf(plain({ lines }));
    expect(fields.find(({ name }) => name === 'lines')).toMatchObject({
      members: {
        sku: 'string',
        maker: 'object (JSON)',
        'maker.user': 'pointer (reference) → _User',
        other: 'pointer (reference)',
      },
    });
    expect(JSON.stringify(fields)).not.toMatch(/Hidden|system|sessionToken/);
  });
});
