import { describe, expect, it } from 'vitest';
import { type ToolRegistration, toolsOf } from '../declaration/tool.decorator.js';
import { defineTool, ToolDeclarationError, type ToolOptions } from '../declaration/tool-declaration.js';
import { CountObjects } from '../read/count-and-explain.js';
import { GetObject } from '../read/read-objects.js';
import { ToolCatalogue } from './tool-registry.js';

const tool = (name: string, options: Partial<ToolOptions> = {}): ToolRegistration => ({
  ...defineTool({ name, description: `Does ${name}.`, ...options }),
  handler: () => name,
});

function catalogue(): ToolCatalogue {
  const tools = new ToolCatalogue();
  tools.installBuiltIns([...toolsOf(new GetObject()), ...toolsOf(new CountObjects())]);
  return tools;
}

const names = (tools: ToolCatalogue) => tools.all().map(({ definition }) => definition.name);

describe('the tool catalogue', () => {
  it('lists built-ins in catalogue order, then the others by name, however they came', () => {
    const tools = catalogue();
    tools.register(tool('zebra'));
    tools.register(tool('aardvark'));
    expect(names(tools)).toEqual(['count_objects', 'get_object', 'aardvark', 'zebra']);
  });

  it.each([
    'query_class',
    'list_tools',
    'create_object',
    'update_object',
    'delete_object',
    'create_class',
    'delete_class',
  ])("refuses the built-in's name %s without override", (name) => {
    const tools = catalogue();
    const register = () => tools.register(tool(name));
    expect(register).toThrow(ToolDeclarationError);
    expect(register).toThrow('override: true');
    expect(names(tools)).toEqual(['count_objects', 'get_object']);
  });

  it("keeps a built-in's tier, category and client gate when it is overridden", () => {
    const tools = catalogue();
    tools.register(
      tool('get_object', { override: true, permission: 'admin', category: 'mine', clientSafe: false }),
    );
    expect(tools.get('get_object')).toMatchObject({
      builtIn: false,
      definition: {
        permission: 'readonly',
        category: 'query',
        clientSafe: true,
        description: 'Does get_object.',
      },
    });
    expect(names(tools)).toEqual(['count_objects', 'get_object']);
  });

  it.each([
    ['create_object', 'write', true],
    ['update_object', 'write', true],
    ['delete_object', 'admin', true],
    ['create_class', 'admin', false],
    ['delete_class', 'admin', false],
  ])('never lets an override of %s be called below tier %s', (name, permission, clientSafe) => {
    const tools = catalogue();
    tools.register(tool(name, { override: true, permission: 'readonly', clientSafe: true }));
    expect(tools.get(name)?.definition).toMatchObject({ permission, clientSafe, category: 'mutation' });
  });

  it('brings a built-in back when its override is taken away', () => {
    const tools = catalogue();
    const unregister = tools.register(tool('get_object', { override: true }));
    unregister();
    expect(tools.get('get_object')).toMatchObject({ builtIn: true, definition: { title: 'Get an object' } });
  });

  it('replaces the tool that was registered under the name before, overrides included', () => {
    const tools = catalogue();
    const first = tools.register(tool('mine'));
    tools.register(tool('mine', { description: 'Later.' }));
    tools.register(tool('get_object', { override: true }));
    tools.register(tool('get_object', { override: true, description: 'Later.' }));
    first();
    expect(tools.get('mine')?.definition.description).toBe('Later.');
    expect(tools.get('get_object')?.definition.description).toBe('Later.');
    expect(names(tools)).toEqual(['count_objects', 'get_object', 'mine']);
  });

  it('refuses two declarations of one name at the start', () => {
    const tools = catalogue();
    tools.registerDeclared([tool('mine')]);
    expect(() => tools.registerDeclared([tool('mine')])).toThrow('already registered');
  });

  it('refuses a definition that no declaration would pass', () => {
    const { definition, handler } = tool('mine');
    expect(() => catalogue().register({ definition: { ...definition, timeout: 0 }, handler })).toThrow(
      'timeout',
    );
  });

  it('puts built-ins in place once, and nothing that is not one', () => {
    expect(() => catalogue().installBuiltIns([])).toThrow('already in place');
    expect(() => new ToolCatalogue().installBuiltIns([tool('mine')])).toThrow('not a built-in');
    const twice = [...toolsOf(new GetObject()), ...toolsOf(new GetObject())];
    expect(() => new ToolCatalogue().installBuiltIns(twice)).toThrow('declared twice');
  });

  it('changes its version and notifies on every change', () => {
    const tools = catalogue();
    const versions = [tools.version];
    tools.changes.subscribe(() => versions.push(tools.version));
    const unregister = tools.register(tool('mine'));
    unregister();
    unregister();
    expect(new Set(versions).size).toBe(3);
    expect(versions).toHaveLength(3);
  });

  it('does not take away a later tool through an earlier handle', () => {
    const tools = catalogue();
    const first = tools.register(tool('mine'));
    first();
    tools.register(tool('mine'));
    first();
    expect(tools.get('mine')).toBeDefined();
  });

  it('knows no tool that was not registered', () => {
    expect(catalogue().get('create_object')).toBeUndefined();
    expect(catalogue().get('__proto__')).toBeUndefined();
  });
});
