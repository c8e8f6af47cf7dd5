import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUILT_IN_TOOLS } from '../built-in-tools.js';
import { toolDeclarations } from '../declaration/tool.decorator.js';
import type { ToolDefinition } from '../tool.js';
import { nameClasses } from './named-classes.js';

const definitions = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
  ({ definition }) => definition,
);
const using = definitions.filter(({ use }) => use !== undefined && use !== 'createClass');
const classNameOf = ({ inputSchema }: ToolDefinition) =>
  (inputSchema['properties'] as Record<string, { enum?: readonly string[]; description?: string }>)[
    'class_name'
  ];

describe('a tool that names classes', () => {
  it('is every built-in tool with a class_name, and no other', () => {
    for (const tool of definitions)
      expect([tool.name, tool.use !== undefined]).toEqual([tool.name, classNameOf(tool) !== undefined]);
  });

  it('never names another class than the given ones, nor only some of them', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[A-Z][A-Za-z]{0,20}$/), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(
        fc.constantFrom(...using),
        names,
        fc.boolean(),
        fc.boolean(),
        (tool, given, isComplete, pointer) => {
          const described = classNameOf(nameClasses(tool, { names: given, isComplete, pointer }));
          expect(described?.description).toMatch(/class/);
          if (described?.enum) {
            expect(isComplete).toBe(true);
            expect(described.enum).toEqual(given);
            expect(given.join().length).toBeLessThanOrEqual(256);
          } else {
            expect(isComplete && given.join().length <= 256).toBe(false);
            expect(described?.description?.includes('get_all_schemas')).toBe(pointer);
          }
        },
      ),
    );
  });

  it('is the same object for the same names, and leaves the tool as it was', () => {
    const [tool] = using as [ToolDefinition];
    const named = () => nameClasses(tool, { names: ['Post'], isComplete: true, pointer: true });
    expect(named()).toBe(named());
    expect(classNameOf(tool)?.enum).toBeUndefined();
  });
});
