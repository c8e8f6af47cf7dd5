import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VALID } from '../../../test/support/wrong-configurations.js';
import { ConfigError } from './config-error.js';
import { CONFIG_SCHEMA } from './config.js';
import { checkConfig } from './load-config.js';
import { assertChoiceOfLimits, AgentOptionsError, assertSubAgentOptions } from './agent-options.js';
import { acceptsType, schemaErrors, type SchemaNode } from '#schema';
import { FORBIDDEN_KEYS } from './schema/readable-part.js';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'parley-mutations-'))));
afterAll(() => rmSync(folder, { recursive: true }));

type Members = Record<string, unknown>;
interface Place {
  readonly path: readonly string[];
  readonly value: unknown;
  /** What says which keys there may be; none where any may be. */
  readonly schema: SchemaNode | null;
}

/** The schema that a value of a place fits, among alternatives that of its kind. */
function readSchema(schema: SchemaNode | null, value: unknown): SchemaNode | null {
  if (!schema?.anyOf) return schema;
  return schema.anyOf.find((branch) => schemaErrors(branch, value).length === 0) ?? null;
}

function* placesIn(value: unknown, given: SchemaNode | null, path: readonly string[] = []): Generator<Place> {
  const schema = readSchema(given, value);
  yield { path, value, schema };
  if (value === null || typeof value !== 'object') return;
  for (const [key, member] of Object.entries(value)) {
    const own = schema?.properties?.[key] ?? schema?.additionalProperties;
    const below = Array.isArray(value) ? schema?.items : typeof own === 'object' ? own : undefined;
    yield* placesIn(member, below ?? null, [...path, key]);
  }
}

/** A deep copy in which an object is replaced by a changed one. */
function changedAt(value: unknown, path: readonly string[], change: (at: unknown) => unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return change(value);
  if (Array.isArray(value))
    return value.map((one: unknown, index) => (String(index) === key ? changedAt(one, rest, change) : one));
  return Object.fromEntries(
    Object.entries(value as Members).map(([name, one]) => [
      name,
      name === key ? changedAt(one, rest, change) : one,
    ]),
  );
}

interface Mutation {
  readonly kind: string;
  readonly config: unknown;
  /** Where the mistake is. */
  readonly path: string;
}

const isObject = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** One letter twice: a name that nothing has, and that is near. */
const misspelt = (key: string, at: number) => {
  const index = at % key.length;
  return `${key.slice(0, index + 1)}${key.slice(index)}`;
};

const WRONG_VALUES: readonly unknown[] = ['\u0000text', -1.5, true, null, [], [[]], { nothing: 1 }];

function mutations(places: readonly Place[], base: unknown): fc.Arbitrary<Mutation> {
  const closed = places.filter(
    ({ value, schema }) => isObject(value) && schema?.additionalProperties === false,
  );
  const named = closed.filter(({ value }) => Object.keys(value as Members).length > 0);
  const objects = places.filter(({ value }) => isObject(value));
  const typed = places.flatMap((place) => {
    const { schema } = place;
    const wrong =
      schema === null || place.path.length === 0
        ? []
        : WRONG_VALUES.filter((value) => isWrong(place, value, base));
    return wrong.map((value) => ({ place, value }));
  });
  return fc.oneof(
    fc.tuple(fc.constantFrom(...named), fc.nat(), fc.nat()).map(([{ path, value }, which, at]) => {
      const keys = Object.keys(value as Members);
      const key = keys[which % keys.length] as string;
      const other = misspelt(key, at);
      const config = changedAt(base, path, (members) =>
        Object.fromEntries(
          Object.entries(members as Members).map(([name, one]) => [name === key ? other : name, one]),
        ),
      );
      return { kind: 'misspelt', config, path: [...path, other].join('.') };
    }),
    ...(typed.length === 0
      ? []
      : [
          fc.constantFrom(...typed).map(({ place: { path }, value }) => ({
            kind: 'type',
            config: changedAt(base, path, () => value),
            path: path.join('.'),
          })),
        ]),
    fc.tuple(fc.constantFrom(...closed), fc.constantFrom('zzzzzz', 'qqqqqqqq')).map(([{ path }, key]) => ({
      kind: 'extra',
      config: changedAt(base, path, (members) => ({ ...(members as Members), [key]: 1 })),
      path: [...path, key].join('.'),
    })),
    fc.tuple(fc.constantFrom(...objects), fc.constantFrom(...FORBIDDEN_KEYS)).map(([{ path }, key]) => ({
      kind: 'forbidden',
      config: changedAt(base, path, (members) =>
        Object.fromEntries([...Object.entries(members as Members), [key, { permissions: 'admin' }]]),
      ),
      path: [...path, key].join('.'),
    })),
  );
}

/** Whether the value has a type that no alternative of the place has. */
function isWrong({ path }: Place, value: unknown, base: unknown): boolean {
  let schema: SchemaNode | undefined = base === VALID ? CONFIG_SCHEMA : undefined;
  let at: unknown = base;
  for (const key of path) {
    const node: SchemaNode | null | undefined = schema && readSchema(schema, at);
    const own: boolean | SchemaNode | undefined = node?.properties?.[key] ?? node?.additionalProperties;
    schema = Array.isArray(at) ? node?.items : typeof own === 'object' ? own : undefined;
    at = (at as Members)[key];
  }
  return (
    schema !== undefined &&
    (schema.type !== undefined || schema.anyOf !== undefined) &&
    !acceptsType(schema, value)
  );
}

function errorsOf(config: unknown) {
  writeFileSync(join(folder, 'parley.yaml'), JSON.stringify(config));
  try {
    checkConfig({ env: {}, cwd: folder, start: 'http', tools: new Set(['aggregate']) });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.issues;
    throw error;
  }
}

describe('a single mistake in a configuration without one', () => {
  const places = [...placesIn(VALID, CONFIG_SCHEMA)];

  it('is reported once, at the place where it was made, and nothing is loaded', () => {
    fc.assert(
      fc.property(mutations(places, VALID), ({ config, path }) => {
        const errors = errorsOf(config);
        expect(errors.map((error) => error.path)).toEqual([path]);
        expect(errors[0]?.message).not.toBe('');
      }),
      { numRuns: 500 },
    );
  });

  it('is none where nothing was changed', () => {
    expect(errorsOf(VALID)).toEqual([]);
  });
});

describe('what an error says of a value', () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null), fc.double());
  const options = Object.values(CONFIG_SCHEMA.properties).flatMap((section) =>
    Object.keys(section.properties ?? {}),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...options, 'A', 'only', 'profile', 'user', 'role'), tie('value'), {
        maxKeys: 5,
      }),
    ),
  }));
  const config = fc.dictionary(fc.constantFrom(...Object.keys(CONFIG_SCHEMA.properties)), value, {
    maxKeys: 6,
  });

  const accepted = new Ajv({ strict: false }).compile(CONFIG_SCHEMA);

  it('is something exactly where Ajv says that the schema does not fit', () => {
    fc.assert(
      fc.property(config, (given) => {
        expect(schemaErrors(CONFIG_SCHEMA, given).length === 0).toBe(accepted(given));
      }),
    );
  });
});

describe('a single mistake in what code gives', () => {
  const LIMITS = {
    permissions: 'readonly',
    tools: { only: ['query_class'] },
    classes: ['Post'],
    filters: { Post: { archived: { $ne: true } } },
    tenantId: 'acme',
    clientMode: false,
    rateLimit: 5,
    strictToolFilter: true,
  };
  const CLOSED: SchemaNode = { type: 'object', additionalProperties: false };
  const places: readonly Place[] = [
    { path: [], value: LIMITS, schema: CLOSED },
    { path: ['tools'], value: LIMITS.tools, schema: CLOSED },
    { path: ['filters'], value: LIMITS.filters, schema: null },
    { path: ['filters', 'Post'], value: LIMITS.filters.Post, schema: null },
  ];
  const wrongly = fc
    .tuple(
      fc.constantFrom(...Object.keys(LIMITS)),
      fc.constantFrom(-1.5, {}, () => ({}), 1n, Symbol('x')),
    )
    .filter(
      ([key, one]) =>
        !(key === 'tenantId' && one === -1.5) &&
        !(['tools', 'filters', 'classes'].includes(key) && typeof one === 'object'),
    )
    .map(([key, one]) => ({ kind: 'type', config: { ...LIMITS, [key]: one }, path: key }));
  const named = mutations(places, LIMITS);

  it.each([
    [
      'an agent',
      'agent.',
      (options: unknown) => assertChoiceOfLimits('agentFor', { agent: options, principal: 'x' }),
    ],
    ['a sub-agent', '', (options: unknown) => assertSubAgentOptions('sub-agent', options)],
  ] as const)('is reported once, and %s is not made', (_, prefix, make) => {
    expect(() => make(LIMITS)).not.toThrow();
    fc.assert(
      fc.property(fc.oneof(wrongly, named), ({ config: options, path }) => {
        let errors: readonly string[] = [];
        try {
          make(options);
        } catch (error) {
          errors = (error as AgentOptionsError).errors.map((one) => one.path);
        }
        expect(errors).toEqual([`${prefix}${path}`]);
      }),
    );
  });
});
