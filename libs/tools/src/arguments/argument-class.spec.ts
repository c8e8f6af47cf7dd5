import 'reflect-metadata';
import { plainToInstance } from 'class-transformer';
import {
  IsInt,
  IsOptional,
  Matches,
  ValidateNested,
  validateSync,
  type ValidationError,
} from 'class-validator';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refused } from '#core';
import { Alias, AsGiven, listUndeclaredNames, Undeclared } from '#schema';
import { BUILT_IN_TOOLS } from '../built-in-tools.js';
import { type ClassReader, isClassReader } from '../declaration/class-reader.js';
import { toolDeclarations } from '../declaration/tool.decorator.js';
import { argumentReader, type Arguments } from './argument-class.js';
import {
  Choice,
  DefaultFilterChoice,
  Flag,
  JsonObject,
  RequiredText,
  Text,
  TextList,
  WholeNumber,
} from './argument.decorators.js';

class Sample {
  @WholeNumber({ min: 1, max: 1000 }) limit = 100;
  @WholeNumber({ min: 1, max: 1000, above: 'refuse' }) strict = 100;
  @Text() constructor_?: string;
  @Choice(['json', 'csv']) format = 'json';
  @TextList() names?: readonly string[];
  @JsonObject() facets?: object;
  @Flag() compact = true;
  @DefaultFilterChoice() apply_canonical_filter?: boolean;
  @Text() @Alias('klass') class?: string;
  @Flag() @Undeclared() hidden = false;
  @AsGiven() given!: Arguments;
}
class Named {
  @RequiredText() class_name!: string;
}

const readSample = argumentReader(Sample);
const readNamed = argumentReader(Named);

function refusalOf(read: () => unknown) {
  try {
    return { value: read() };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { code: error.refusal.code, message: error.refusal.message };
  }
}

const refused = (message: string) => ({ code: 'invalid_argument', message: `Invalid arguments: ${message}` });
const sample = <Name extends keyof Sample>(name: Name, value: unknown) =>
  refusalOf(() => readSample({ [name]: value })[name]);

describe('arguments', () => {
  it.each([['text'], [['a']], [7], [true]])('refuses %j in place of an object', (value) => {
    expect(refusalOf(() => readSample(value))).toEqual(refused('arguments must be an object'));
  });

  it.each([[undefined], [null]])('takes %j for no arguments', (value) => {
    expect(readSample(value)).toMatchObject({ limit: 100, format: 'json', compact: true, given: {} });
  });

  it('reads only members of its own, never inherited ones', () => {
    const args = readSample(JSON.parse('{"__proto__":{"limit":5}}'));
    expect(args.limit).toBe(100);
    expect(Object.getPrototypeOf(args)).toBe(Sample.prototype);
  });

  it('reads the first of the names that were written', () => {
    expect(readSample({ klass: 'a' }).class).toBe('a');
    expect(readSample({ klass: 'a', class: 'b' }).class).toBe('b');
    expect(listUndeclaredNames(Sample)).toEqual(['klass', 'hidden']);
  });
});

describe('an integer argument', () => {
  it.each([
    [undefined, 100],
    [null, 100],
    [1, 1],
    [1000, 1000],
    [5000, 1000],
  ])('reads %j as %d', (limit, expected) => {
    expect(sample('limit', limit)).toEqual({ value: expected });
  });

  it('refuses a number in quotes, and says how to write it', () => {
    expect(sample('limit', '10')).toEqual(refused('limit must be an integer: write 10 without quotes'));
  });

  it.each([['ten'], ['1.5'], [1.5], [Number.NaN], [Number.POSITIVE_INFINITY], [[5]], [{}], [true]])(
    'refuses %j: not an integer',
    (limit) => {
      expect(sample('limit', limit)).toEqual(refused('limit must be an integer'));
    },
  );

  it.each([[0], [-1]])('refuses %d: below the least', (limit) => {
    expect(sample('limit', limit)).toEqual(refused('limit must be at least 1'));
  });

  it.each([[0], [1001], [1.5], ['5'], [true]])(
    'refuses %j where a bound is strict, naming both ends',
    (limit) => {
      expect(sample('strict', limit)).toEqual(refused('strict must be between 1 and 1000'));
    },
  );

  it('is never outside its bounds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.anything()), (limit) => {
        const read = sample('limit', limit);
        const right =
          'value' in read
            ? Number(read.value) >= 1 && Number(read.value) <= 1000
            : read.code === 'invalid_argument';
        expect(right).toBe(true);
      }),
    );
  });
});

describe('text arguments', () => {
  it('refuses a missing or empty required one', () => {
    for (const args of [{}, { class_name: '' }, { class_name: null }])
      expect(refusalOf(() => readNamed(args))).toEqual(refused('class_name is required'));
  });

  it.each([[5], [['Post']], [{}]])('refuses %j', (class_name) => {
    expect(refusalOf(() => readNamed({ class_name }))).toEqual(refused('class_name must be a string'));
  });

  it('reads a choice in any case and answers with the known spelling', () => {
    expect(sample('format', 'CSV')).toEqual({ value: 'csv' });
    expect(sample('format', undefined)).toEqual({ value: 'json' });
    expect(sample('format', 'xml')).toEqual(refused('format must be one of json, csv'));
    expect(sample('format', '')).toEqual(refused('format must be one of json, csv'));
    expect(sample('format', 5)).toEqual(refused('format must be a string'));
  });

  it('reads a list of strings and refuses anything else', () => {
    expect(sample('names', ['a', 'b'])).toEqual({ value: ['a', 'b'] });
    expect(sample('names', null)).toEqual({ value: undefined });
    expect(sample('names', 'a')).toEqual(refused('names must be a list of strings'));
    expect(sample('names', ['a', 1])).toEqual(refused('names must be a list of strings'));
  });
});

describe('other arguments', () => {
  it('reads an object and refuses lists and scalars', () => {
    expect(sample('facets', { a: 1 })).toEqual({ value: { a: 1 } });
    expect(sample('facets', undefined)).toEqual({ value: undefined });
    for (const facets of [[], 'x', 1])
      expect(sample('facets', facets)).toEqual(refused('facets must be an object'));
  });

  it('refuses a boolean that is not one', () => {
    expect(sample('compact', false)).toEqual({ value: false });
    expect(sample('compact', undefined)).toEqual({ value: true });
    expect(sample('compact', 'no')).toEqual(refused('compact must be true or false'));
  });

  it('takes nothing but JSON false for opting out of the canonical filter', () => {
    for (const value of [false, true]) expect(sample('apply_canonical_filter', value)).toEqual({ value });
    expect(readSample({}).apply_canonical_filter).toBeUndefined();
    expect(sample('apply_canonical_filter', null)).toEqual({ value: undefined });
    for (const value of [0, 'false', []])
      expect(sample('apply_canonical_filter', value)).toEqual(
        refused('apply_canonical_filter must be true or false'),
      );
  });
});

describe('compiled checks', () => {
  const DECLARED = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
    ({ definition, input }) => [definition.name, input as ClassReader] as const,
  );
  const value = fc.oneof(
    fc.constantFrom<unknown>(0, 1, 5, 1e9, -1, 1.5, true, false, '', ' ', 'x', 'CSV', 'sum', 'day', 'ids'),
    fc.constantFrom<unknown>([], ['x'], [5], {}, { a: 1 }, ['title', { body: 'Text' }]),
    // Of this name class-transformer copies nothing.
    fc.anything({ maxDepth: 1, key: fc.string().filter((key) => key !== '__proto__') }),
  );
  const firstMessage = ([error]: ValidationError[]) => Object.values(error?.constraints ?? {})[0];

  it.each(DECLARED)('of %s are those of class-validator, and change the same values', (_, reader) => {
    expect(isClassReader(reader)).toBe(true);
    const read = argumentReader(reader.type);
    const names = Object.keys((reader.jsonSchema['properties'] ?? {}) as object);
    const args = fc.dictionary(fc.constantFrom('', ...names), value, { maxKeys: names.length });
    fc.assert(
      fc.property(args, (given) => {
        const present = Object.fromEntries(Object.entries(given).filter(([, one]) => (one ?? null) !== null));
        const whole = plainToInstance(reader.type, present);
        const errors = validateSync(whole, { stopAtFirstError: true });
        // In the order in which the properties were declared.
        const sorted = names.flatMap((name) => errors.find(({ property }) => property === name) ?? []);
        const compiled = refusalOf(() => read(present));
        if (sorted.length > 0) {
          expect(compiled).toEqual(refused(firstMessage(sorted) ?? ''));
          return;
        }
        const values = (one: unknown) => names.map((name) => (one as Record<string, unknown>)[name]);
        // Where class-transformer writes undefined over a default, a compiled reader keeps the default.
        const defaults = values(new reader.type());
        expect(values(Reflect.get(compiled, 'value'))).toEqual(
          values(whole).map((one, index) => one ?? defaults[index]),
        );
      }),
      { numRuns: 200 },
    );
  });

  it('run in the order of the decorators, with the message that each was given', () => {
    class Ordered {
      @IsOptional() @Matches(/^a/, { message: '$property begins with a' }) word?: string;
      @IsInt() count = 1;
    }
    const read = argumentReader(Ordered);
    expect(refusalOf(() => read({ word: 'b', count: 'x' }))).toEqual(refused('word begins with a'));
    expect(refusalOf(() => read({ count: 'x' }))).toEqual(refused('count must be an integer number'));
  });

  it('are refused at registration where they cannot be compiled', () => {
    class Outer {
      @ValidateNested() inner!: Named;
    }
    expect(() => argumentReader(Outer)).toThrow("Outer.inner: 'nestedValidation' cannot be compiled");
  });
});
