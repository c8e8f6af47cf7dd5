import { describe, expect, it } from 'vitest';
import { callOf, SampleRecords } from '../contracts/sample-records.js';
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
