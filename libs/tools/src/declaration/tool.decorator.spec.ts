import { IsISO8601, IsOptional, IsString } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { callOf, SampleRecords } from '../contracts/sample-records.js';
import { Ctx, Payload } from './tool-parameters.js';
import { Tool, toolDeclarations, toolsOf } from './tool.decorator.js';
import { defineTool, ToolDeclarationError, type ToolOptions } from './tool-declaration.js';

const MINIMAL = { name: 'overdue', description: 'Overdue invoices.' };

class Invoices {
  private readonly factor = 2;

  @Tool(MINIMAL)
  overdue(args: Readonly<Record<string, unknown>>) {
    return this.factor * Number(args['days']);
  }

  get total(): number {
    throw new Error('a getter must not run while tools are looked for');
  }

  helper() {
    return null;
  }
}

describe('@Tool', () => {
  it('fills in tier, category, timeout, schema and client gate', () => {
    const [declaration] = toolDeclarations(Invoices.prototype);
    expect(declaration).toMatchObject({
      methodName: 'overdue',
      definition: {
        ...MINIMAL,
        permission: 'readonly',
        category: 'custom',
        timeout: 30,
        inputSchema: { type: 'object', properties: {}, required: [] },
        clientSafe: false,
      },
    });
  });

  it('finds declared methods only', () => {
    expect(toolDeclarations(Invoices.prototype).map(({ methodName }) => methodName)).toEqual(['overdue']);
  });

  it('runs the method on its provider', () => {
    const invoices = new Invoices();
    const [registration] = toolsOf(invoices);
    expect(registration?.handler({ days: 21 }, callOf(invoices, new SampleRecords()))).toBe(42);
  });

  it('is inherited, and taken away by a method that redefines without declaring', () => {
    class Inherits extends Invoices {}
    class Redefines extends Invoices {
      override overdue() {
        return 0;
      }
    }
    expect(toolDeclarations(Inherits.prototype)).toHaveLength(1);
    expect(toolDeclarations(Redefines.prototype)).toHaveLength(0);
  });

  it('refuses two methods with one name', () => {
    class Twice {
      @Tool(MINIMAL)
      first() {
        return 1;
      }

      @Tool(MINIMAL)
      second() {
        return 2;
      }
    }
    expect(() => toolDeclarations(Twice.prototype)).toThrow(
      new ToolDeclarationError('overdue', 'declared by both first and second'),
    );
  });
});

class Due {
  @IsISO8601()
  before!: string;
  @IsOptional()
  @IsString()
  reason?: string;
}

/** As a compiler with `emitDecoratorMetadata` records the types of parameters; the one of these tests records none. */
const recorded = (...types: unknown[]) => Reflect.metadata('design:paramtypes', types) as MethodDecorator;

describe('the class that types the arguments', () => {
  class Ledger {
    @Tool({ ...MINIMAL, name: 'first' })
    @recorded(Due, Object)
    first(args: Due) {
      return args;
    }

    @Tool({ ...MINIMAL, name: 'decorated' })
    @recorded(Object, Due)
    decorated(@Ctx() call: object, @Payload() args: Due) {
      return { call, args };
    }

    @Tool({ ...MINIMAL, name: 'one_of_them' })
    @recorded(Due)
    oneOfThem(@Payload('due') due: Due) {
      return due;
    }

    @Tool({ ...MINIMAL, name: 'given', input: { type: 'object', properties: { day: { type: 'string' } } } })
    @recorded(Due)
    given(args: Due) {
      return args;
    }

    @Tool({ ...MINIMAL, name: 'an_interface' })
    @recorded(Object)
    anInterface(args: object) {
      return args;
    }
  }
  const properties = (tool: string) => {
    const found = toolDeclarations(Ledger.prototype).find(({ definition }) => definition.name === tool);
    return Object.keys(found?.definition.inputSchema['properties'] ?? {});
  };

  it('is the input of a tool that names none', () => {
    expect(properties('first')).toEqual(['before', 'reason']);
    expect(properties('decorated')).toEqual(['before', 'reason']);
  });

  it('is not the input where one is given, nor where it types one argument', () => {
    expect(properties('given')).toEqual(['day']);
    expect(properties('one_of_them')).toEqual([]);
    expect(properties('an_interface')).toEqual([]);
  });

  it('ends the start when it has no rules', () => {
    class Bare {}
    const declare = () => {
      class Unchecked {
        @Tool(MINIMAL)
        @recorded(Bare)
        unchecked(args: Bare) {
          return args;
        }
      }
      return Unchecked;
    };
    expect(declare).toThrow(/is the class Bare without class-validator decorators/);
  });
});

describe('a declaration', () => {
  it.each<[string, Partial<Record<keyof ToolOptions, unknown>>]>([
    ['timeout must be at least 1 second', { timeout: 0 }],
    ['timeout must be at least 1 second', { timeout: Number.NaN }],
    ['the name must be 1 to 128', { name: 'no spaces' }],
    ['the name must be 1 to 128', { name: '' }],
    ['a description is required', { description: ' ' }],
    ['the category must not be blank', { category: '' }],
    ['permission must be readonly, write or admin', { permission: 'root' }],
    ['input must be a JSON Schema of type object', { input: { type: 'array', items: {} } }],
    ['output must be a JSON Schema of type object', { output: { type: 'string' } }],
    [
      'input.properties.ids is an array without items',
      { input: { type: 'object', properties: { ids: { type: 'array' } } } },
    ],
    [
      'input.properties.rows.items is an array without items',
      { input: { type: 'object', properties: { rows: { type: 'array', items: { type: 'array' } } } } },
    ],
  ])('is refused: %s', (error, options) => {
    const declare = () => defineTool({ ...MINIMAL, ...options } as ToolOptions);
    expect(declare).toThrow(ToolDeclarationError);
    expect(declare).toThrow(error);
  });

  it('names the title in the annotations too', () => {
    const options = { ...MINIMAL, title: 'Overdue', annotations: { readOnlyHint: true } };
    expect(defineTool(options).definition.annotations).toEqual({ title: 'Overdue', readOnlyHint: true });
  });
});
