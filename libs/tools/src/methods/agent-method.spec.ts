import { describe, expect, it } from 'vitest';
import {
  AgentMethod,
  listAgentMethods,
  AgentFields,
  AgentHidden,
  AgentMasks,
  AgentTenantScope,
  findClassDeclaration,
  ParseClass,
} from './parse-class.decorators.js';
import { MethodDeclarationError, impliesWriting } from './method-declaration.js';
import { effectiveTier, type MethodCall, MethodRegistry } from './method-registry.js';

@ParseClass('User', { fields: ['username', 'email'] })
@AgentFields('username', 'bio')
@AgentTenantScope('orgId')
class UserMethods {
  private readonly greeting = 'Hello';

  @AgentMethod({ permission: 'write', permittedKeys: ['name'], agent: true })
  greet(args: Record<string, unknown>) {
    return `${this.greeting} ${String(args['name'])}`;
  }

  @AgentMethod({ name: 'active?', type: 'instance' })
  isActive() {
    return true;
  }

  notOffered() {
    return 'secret';
  }
}

const registry = new MethodRegistry();
for (const { className, method } of listAgentMethods(new UserMethods())) registry.register(className, method);

describe('declared methods', () => {
  it('are found by the class they speak for, under its stored name', () => {
    expect(registry.of('_User').map(({ name }) => name)).toEqual(['greet', 'active?']);
    expect(registry.of('User')).toEqual([]);
  });

  it('run on their own provider', () => {
    const call = {} as MethodCall;
    expect(registry.find('_User', 'greet')?.handler({ name: 'Ada' }, call)).toBe('Hello Ada');
  });

  it.each(['notOffered', 'constructor', 'toString', '__proto__', 'isActive'])('do not include %s', (name) => {
    expect(registry.find('_User', name)).toBeUndefined();
  });

  it('start without any right but that of readonly agents, and without the agent', () => {
    expect(registry.find('_User', 'active?')).toMatchObject({
      permission: 'readonly',
      supportsDryRun: false,
      permittedKeys: null,
      wantsAgent: false,
      type: 'instance',
    });
    expect(registry.find('_User', 'greet')).toMatchObject({
      permission: 'write',
      wantsAgent: true,
      type: 'class',
    });
  });

  it('act at their own tier, and at readonly while they are unknown', () => {
    const tool = { name: 'call_method', permission: 'readonly' } as const;
    const tier = (args: unknown) => effectiveTier(tool, args, registry);
    expect(tier({ class_name: 'User', method_name: 'greet' })).toBe('write');
    expect(tier({ class_name: '_User', method_name: 'nope' })).toBe('readonly');
    for (const args of [null, undefined, 'x', [], { class_name: 1 }]) expect(tier(args)).toBe('readonly');
    expect(effectiveTier({ name: 'delete_object', permission: 'admin' }, {}, registry)).toBe('admin');
  });

  it('cannot be declared twice', () => {
    const again = listAgentMethods(new UserMethods())[0];
    expect(() => registry.register('_User', again!.method)).toThrow(MethodDeclarationError);
  });

  it.each([
    ['a bad name', { name: 'a.b' }, 'identifier'],
    ['a dangerous name', { name: 'Eval' }, 'blocked for security reasons'],
    ['an unknown tier', { permission: 'root' }, 'permission'],
    ['an unknown type', { type: 'static' }, 'type'],
    ['keys that are no list', { permittedKeys: 'name' }, 'permittedKeys'],
  ])('refuse %s at start', (_, options, text) => {
    @ParseClass('Post')
    class Bad {
      @AgentMethod(options as object)
      run() {
        return null;
      }
    }
    expect(() => listAgentMethods(new Bad())).toThrow(text);
  });

  it('need a class to speak for', () => {
    class Homeless {
      @AgentMethod()
      run() {
        return null;
      }
    }
    expect(() => listAgentMethods(new Homeless())).toThrow('@ParseClass');
  });

  it('are told apart when a readonly name promises a change', () => {
    const method = registry.find('_User', 'active?')!;
    expect(impliesWriting({ ...method, name: 'resetCounters' })).toBe(true);
    expect(impliesWriting({ ...method, name: 'resetCounters', permission: 'write' })).toBe(false);
    expect(impliesWriting(method)).toBe(false);
  });
});

describe('class decorators', () => {
  it('join to one declaration, each rule narrowing the others', () => {
    expect(findClassDeclaration(UserMethods)).toEqual({
      className: 'User',
      config: { fields: ['username'], tenantScope: { field: 'orgId', bypass: [] } },
    });
  });

  it('mask fields, each by the strictest of what is said', () => {
    @ParseClass('Card')
    @AgentMasks({ number: { mask: { keep: 4 } }, pin: 'drop' })
    @AgentMasks({ number: 'hash' })
    class Card {}
    expect(findClassDeclaration(Card)?.config.masks).toEqual({
      number: { readonly: 'mask', write: 'mask', admin: 'mask' },
      pin: 'drop',
    });
  });

  it('say nothing of a class that has none', () => {
    expect(findClassDeclaration(class Plain {})).toBeNull();
  });

  it('hide a class entirely, or from all but the master key', () => {
    @ParseClass('Vault')
    @AgentHidden()
    @AgentHidden({ except: 'masterKey' })
    class Vault {}
    expect(findClassDeclaration(Vault)?.config).toEqual({ hidden: true });
  });
});
