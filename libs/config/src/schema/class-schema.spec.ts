import { describe, expect, it } from 'vitest';
import { readDefaults, readDocumentedDefaults, readDocumentedSchema, readSchema } from './class-schema.js';
import { Ajv } from 'ajv';
import { Equals, IsIn, IsInt, IsString, Matches, Max, Min } from 'class-validator';
import { Nullable, schemaErrors } from '#schema';
import {
  AnyOf,
  IsText,
  IsTexts,
  joinOptions,
  ListOf,
  MapOf,
  Nested,
  Option,
  type OptionsClass,
  readOptions,
  pickOptions,
} from './option.js';

class Window {
  @Option('how many', { required: true })
  @IsInt()
  @Min(1)
  readonly limit!: number;
}

class Base {
  @Option('`a` or `b`', { required: true })
  @IsIn(['a', 'b'])
  readonly kind!: 'a' | 'b';
}

class Section extends Base {
  @Option('see [ports](ports.md#all)')
  @IsInt()
  @Min(0)
  @Max(9)
  readonly port: number = 3;

  @Option('where')
  @IsString()
  @Matches(/^https?:\/\//)
  @Nullable()
  readonly url: string | null = null;

  @Option('names')
  @IsTexts()
  readonly names: readonly string[] = [];

  @Option('one of several')
  @AnyOf({ const: 'all' }, Window)
  readonly scope?: 'all' | Window;

  @Option('a list')
  @ListOf(Window)
  readonly windows?: readonly Window[];

  @Option('by name', { default: 'none' })
  @MapOf(Window, { pattern: '^[a-z]+$' })
  readonly byName?: Readonly<Record<string, Window>>;

  @Option('another')
  @Nested(Window)
  @Nullable()
  readonly window?: Window | null;
}

const WINDOW = {
  type: 'object',
  additionalProperties: false,
  required: ['limit'],
  properties: { limit: { type: 'integer', minimum: 1 } },
};

describe('a class of options', () => {
  it('is read as JSON Schema, options of the class that it extends first', () => {
    expect(readSchema(Section)).toEqual({
      type: 'object',
      additionalProperties: false,
      required: ['kind'],
      properties: {
        kind: { enum: ['a', 'b'] },
        port: { type: 'integer', minimum: 0, maximum: 9 },
        url: { type: ['string', 'null'], pattern: '^https?://' },
        names: { type: 'array', items: { type: 'string', minLength: 1 } },
        scope: { anyOf: [{ const: 'all' }, WINDOW] },
        windows: { type: 'array', items: WINDOW },
        byName: { type: 'object', propertyNames: { pattern: '^[a-z]+$' }, additionalProperties: WINDOW },
        window: { ...WINDOW, type: ['object', 'null'] },
      },
    });
    expect(Object.keys(readSchema(Section).properties ?? {})).toEqual([...readOptions(Section).keys()]);
  });

  it('has the initial values of its properties as defaults, and reports those that others fill in', () => {
    expect(readDefaults(Section)).toEqual({ port: 3, url: null, names: [] });
    expect(Object.isFrozen(readDefaults(Section))).toBe(true);
    expect(readDocumentedDefaults(Section)).toEqual({ port: 3, url: null, names: [], byName: 'none' });
  });

  it('is published with its words and defaults', () => {
    const { properties } = readDocumentedSchema(Section);
    expect(properties?.['port']).toEqual({
      type: 'integer',
      minimum: 0,
      maximum: 9,
      description: 'see ports',
      default: 3,
    });
    expect(properties?.['window']?.properties?.['limit']?.description).toBe('how many');
  });

  it.each<[unknown, boolean]>([
    [{ kind: 'a' }, true],
    [{ kind: 'a', url: null, window: null, port: undefined }, true],
    [{ kind: 'b', scope: 'all', windows: [{ limit: 1 }], byName: { x: { limit: 2 } } }, true],
    [{ kind: 'b', scope: { limit: 5 } }, true],
    [{}, false],
    [null, false],
    [{ kind: 'c' }, false],
    [{ kind: 'a', port: null }, false],
    [{ kind: 'a', port: 10 }, false],
    [{ kind: 'a', other: 1 }, false],
    [{ kind: 'a', toString: 1 }, false],
    [{ kind: 'a', scope: { limit: 0 } }, false],
    [{ kind: 'a', windows: [{ limit: 1 }, {}] }, false],
    [{ kind: 'a', byName: { X: { limit: 1 } } }, false],
    [{ kind: 'a', names: [''] }, false],
  ])('accepts the same by its schema as Ajv does: %j', (value, accepted) => {
    expect(new Ajv({ strict: false }).compile(readSchema(Section))(value)).toBe(accepted);
    expect(schemaErrors(readSchema(Section), value).length === 0).toBe(accepted);
  });
});

const errorPaths = (type: OptionsClass, value: unknown) =>
  schemaErrors(readSchema(type), value).map(({ path }) => path.join('.'));

describe('options of other classes', () => {
  class Other {
    @Option('`b`', { required: true })
    @Equals('b')
    readonly kind!: 'b';

    @Option('a text', { required: true })
    @IsText()
    readonly text!: string;
  }

  it('are picked without their defaults, and need not be given', () => {
    const Picked = pickOptions(Section, ['url', 'port']);
    expect(readDefaults(Picked)).toEqual({});
    expect(Object.keys(readSchema(Picked).properties ?? {})).toEqual(['url', 'port']);
    expect(errorPaths(Picked, {})).toEqual([]);
    expect(errorPaths(Picked, { port: 10 })).toEqual(['port']);
    expect(readOptions(Picked).get('url')?.text).toBe('where');
  });

  it('are joined: an option of several classes is that of the first', () => {
    const Joined = joinOptions([Base, Other], ['kind']);
    expect(readSchema(Joined)).toEqual({
      type: 'object',
      additionalProperties: false,
      required: ['kind'],
      properties: { kind: { enum: ['a', 'b'] }, text: { type: 'string', minLength: 1 } },
    });
    expect(errorPaths(Joined, { kind: 'a' })).toEqual([]);
    expect(errorPaths(Joined, {})).toEqual(['kind']);
  });
});
