import 'reflect-metadata';
import { Type } from 'class-transformer';
import {
  Allow,
  ArrayMaxSize,
  IsArray,
  IsDate,
  IsEnum,
  IsIn,
  IsInt,
  IsMongoId,
  IsNotEmpty,
  IsOptional,
  IsString,
  ValidateNested,
} from 'class-validator';
import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isClassReader } from './class-reader.js';
import { schemaReader, type ValueSchema } from './value-schema.js';

class Line {
  @IsString()
  sku!: string;
}

class Order {
  @ValidateNested({ each: true })
  @Type(() => Line)
  @IsArray()
  @ArrayMaxSize(2)
  lines!: Line[];

  @IsOptional()
  @IsIn(['new', 'paid'])
  state?: string;

  @IsEnum({ Low: 'low', High: 'high' })
  urgency!: string;

  @IsInt({ each: true })
  numbers!: number[];
}

class Loop {
  @ValidateNested()
  @Type(() => Loop)
  next!: Loop;
}

class Untyped {
  @ValidateNested()
  line!: Line;
}

const json = {
  type: 'object',
  properties: { n: { type: 'integer', minimum: 0 }, order: { type: 'string', default: 'asc' } },
  required: ['n'],
} as const;
class OpenArguments {
  @Allow()
  open!: unknown;
}

const zod = z.object({ n: z.number().int().min(0), order: z.string().default('asc') });

const read = async (schema: ValueSchema, value: unknown) => schemaReader(schema, 'input').compile()(value);

describe('a class', () => {
  it('says in which nested object of a list a value does not fit', async () => {
    const given = { lines: [{ sku: 'a' }, { sku: 1, qty: 2 }], urgency: 'low', numbers: [1] };
    expect(await read(Order, given)).toEqual({
      ok: false,
      issues: ['lines.1: property qty should not exist', 'lines.1.sku must be a string'],
    });
  });

  it('becomes a schema with its nested classes, lists and choices', () => {
    expect(schemaReader(Order, 'input').jsonSchema).toEqual({
      type: 'object',
      properties: {
        lines: {
          type: 'array',
          maxItems: 2,
          items: {
            type: 'object',
            properties: { sku: { type: 'string' } },
            required: ['sku'],
            additionalProperties: false,
          },
        },
        state: { type: 'string', enum: ['new', 'paid'] },
        urgency: { type: 'string', enum: ['low', 'high'] },
        numbers: { type: 'array', items: { type: 'integer' } },
      },
      required: ['lines', 'urgency', 'numbers'],
      additionalProperties: false,
    });
  });

  it('becomes an instance, nested ones too, and names what does not fit at any depth', async () => {
    const good = await read(Order, { lines: [{ sku: 'a' }], urgency: 'low', numbers: [1] });
    expect(good).toMatchObject({ ok: true, value: expect.any(Order) as Order });
    expect(good.ok && (good.value as Order).lines[0]).toBeInstanceOf(Line);
    const bad = await read(Order, { lines: [{ sku: 1, root: true }], urgency: 'low', numbers: [1.5] });
    expect(bad).toMatchObject({ ok: false });
    expect(JSON.stringify(bad)).toMatch(/sku must be a string.*|root should not exist/);
  });

  it.each<[ValueSchema, string]>([
    [class Nothing {}, 'without class-validator decorators'],
    [Loop, 'contains itself'],
    [Untyped, '@Type'],
  ])('that has no JSON Schema is refused: %o', (schema, error) => {
    expect(() => schemaReader(schema, 'input')).toThrow(error);
  });
});

describe('a DTO of an application', () => {
  class Visit {
    @IsDate()
    @Type(() => Date)
    at!: Date;
  }
  class Booking {
    @IsDate()
    @Type(() => Date)
    since!: Date;

    @IsOptional()
    @ValidateNested({ each: true })
    @Type(() => Visit)
    visits?: Visit[];

    @IsMongoId()
    id!: string;

    @IsNotEmpty()
    @IsString()
    name!: string;

    @IsOptional()
    @IsIn(['new', 'paid'])
    state?: string;

    @IsOptional()
    @IsString()
    colour?: string;
  }
  // As @ApiProperty of @nestjs/swagger stores its options.
  const tell = (name: string, options: object) =>
    Reflect.defineMetadata('swagger/apiModelProperties', options, Booking.prototype, name);
  tell('name', { type: 'string', description: 'Who books', example: 'Ann', required: true });
  tell('state', { type: 'string', enum: ['new', 'paid', 'gone'] });
  tell('colour', { type: 'string', enum: ['red', 'blue'] });
  const fitting = { id: '0123456789abcdef01234567', name: 'Ann', since: '2026-01-02T03:04:05Z' };

  it('tells dates, identifiers, filled texts, and what @ApiProperty says of its properties', () => {
    expect(schemaReader(Booking, 'input').jsonSchema).toMatchObject({
      properties: {
        since: { type: 'string', format: 'date-time' },
        visits: { items: { properties: { at: { type: 'string', format: 'date-time' } } } },
        id: { type: 'string', pattern: '^[0-9a-fA-F]{24}$' },
        name: { type: 'string', minLength: 1, description: 'Who books', examples: ['Ann'] },
        state: { type: 'string', enum: ['new', 'paid'] },
        colour: { type: 'string', enum: ['red', 'blue'] },
      },
    });
  });

  it('gives the handler dates, at any depth', async () => {
    const result = await read(Booking, { ...fitting, visits: [{ at: '2026-01-02' }] });
    expect(result).toMatchObject({
      ok: true,
      value: { since: new Date('2026-01-02T03:04:05Z'), visits: [{ at: new Date('2026-01-02T00:00:00Z') }] },
    });
  });

  it.each([['March 7'], ['soon'], [5], [true], [{ $gt: '' }]])('takes no %j for a date', async (since) => {
    expect(await read(Booking, { ...fitting, since })).toEqual({
      ok: false,
      issues: ['since must be an ISO 8601 date'],
    });
    expect(await read(Booking, { ...fitting, visits: [{ at: since }] })).toEqual({
      ok: false,
      issues: ['visits.0.at must be an ISO 8601 date'],
    });
  });

  it.each([
    ['since', { since: undefined }],
    ['since', { since: null }],
    ['visits.0.at', { visits: [{}] }],
  ])('says how a missing %s is written', async (name, missing) => {
    expect(await read(Booking, { ...fitting, ...missing })).toEqual({
      ok: false,
      issues: [`${name} must be an ISO 8601 date`],
    });
  });

  it('refuses what its schema refuses', async () => {
    expect(await read(Booking, { ...fitting, id: 'x', name: '' })).toMatchObject({ ok: false });
  });
});

describe('the default values of a class', () => {
  class Page {
    @IsInt()
    size = 20;

    @IsString({ each: true })
    @IsArray()
    fields: string[] = ['name'];

    @IsOptional()
    @IsString()
    after?: string;

    @IsString()
    name!: string;
  }
  class Search {
    @ValidateNested()
    @Type(() => Page)
    page = new Page();

    @IsOptional()
    since = new Date();
  }
  class Needing {
    @IsString()
    readonly text: string;

    constructor(text: { length: number }) {
      this.text = String(text.length);
    }
  }
  const shown = (type: unknown) => {
    const reader = schemaReader(type as ValueSchema, 'input');
    return isClassReader(reader) ? reader.jsonSchemaWithDefaults() : null;
  };

  it('are part of its schema, and what has one is not required', () => {
    expect(shown(Page)).toEqual({
      type: 'object',
      properties: {
        size: { type: 'integer', default: 20 },
        fields: { type: 'array', items: { type: 'string' }, default: ['name'] },
        after: { type: 'string' },
        name: { type: 'string' },
      },
      required: ['name'],
      additionalProperties: false,
    });
  });

  it('are those that a missing property gets', async () => {
    expect(await read(Page, { name: 'n' })).toEqual({
      ok: true,
      value: Object.assign(new Page(), { name: 'n' }),
    });
  });

  it('are shown inside nested classes, and never where JSON cannot hold them', () => {
    const { properties, required } = shown(Search) as {
      properties: { page: object; since: object };
      required: string[];
    };
    expect(properties.page).toEqual(shown(Page));
    expect(properties.since).not.toHaveProperty('default');
    expect(required).toEqual([]);
  });

  it('are none where the constructor needs arguments', () => {
    expect(shown(Needing)).toMatchObject({ properties: { text: { type: 'string' } }, required: ['text'] });
  });

  it('are exactly the JSON value that the property holds, whatever it is', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        // Zero has no sign there.
        const value: unknown = JSON.parse(JSON.stringify(JSON.parse(text)));
        class Any {
          @Allow()
          held: unknown = value;
        }
        const { properties } = shown(Any) as { properties: { held: { default?: unknown } } };
        return JSON.stringify(properties.held.default) === JSON.stringify(value);
      }),
    );
  });
});

describe('a Standard Schema', () => {
  it('that has no JSON Schema is refused, with the page that helps', () => {
    expect(() => schemaReader(v.object({ a: v.string() }) as ValueSchema, 'input')).toThrow(
      'writing-tools.md',
    );
  });

  it('gives the input for arguments and the output for results', () => {
    const trimmed = z.object({ n: z.number().default(1) });
    expect(schemaReader(trimmed, 'input').jsonSchema).not.toHaveProperty('required');
    expect(schemaReader(trimmed, 'output').jsonSchema).toHaveProperty('required', ['n']);
  });
});

describe('a reader', () => {
  it.each<[string, ValueSchema]>([
    ['JSON Schema', json],
    ['zod', zod],
  ])('never changes what it is given, and never passes what does not fit: %s', async (_name, schema) => {
    const compileReader = schemaReader(schema, 'input').compile();
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const before = structuredClone(value);
        const result = await compileReader(value);
        expect(value).toEqual(before);
        if (!result.ok) return;
        const { n, order } = result.value as { n: unknown; order: unknown };
        expect(Number.isInteger(n) && Number(n) >= 0 && typeof order === 'string').toBe(true);
      }),
    );
  });

  it.each([
    ['JSON Schema', { type: 'object', properties: { open: {} } }],
    ['a Standard Schema', z.object({ open: z.any() })],
    ['a class', OpenArguments],
  ])('hands on a copy, also of what the schema leaves open: %s', async (_, schema) => {
    const given = { open: { list: [1] } };
    const read = await schemaReader(schema, 'input').compile()(given);
    (read as { value: typeof given }).value.open.list.push(2);
    expect(given).toEqual({ open: { list: [1] } });
  });

  it('names the place and the rule, and no value', async () => {
    const result = await read(json, { n: 'S3CRET' });
    expect(result).toEqual({ ok: false, issues: ['n: must be integer'] });
  });

  it('of what is no JSON Schema cannot be made', () => {
    expect(() => schemaReader({ type: 'objekt' }, 'input').compile()).toThrow(TypeError);
  });

  it('of two tools may declare one $id', () => {
    const named = { $id: 'https://example.com/order', type: 'object' };
    schemaReader(named, 'input').compile();
    expect(() => schemaReader({ ...named }, 'input').compile()).not.toThrow();
  });
});
