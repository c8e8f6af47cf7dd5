import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent } from './agent.js';
import { type Identity, sessionIdentity, tierCovers, TIERS } from './identity.js';
import { type AgentDefinitionOptions, compileAgentDefinition } from './agent-definition.js';
import { McpRequest } from './mcp-request.js';
import { deriveAgent, SubAgentError, type SubAgentOptions } from './sub-agent.js';

const root = (options: AgentDefinitionOptions = {}, identity?: Identity) =>
  new Agent({
    definition: compileAgentDefinition('root', options),
    principal: 'p',
    ...(identity && { identity }),
  });
const USER: Identity = { kind: 'aclUser', userId: 'ada' };

describe('a sub-agent', () => {
  it('is readonly, however much its parent may', () => {
    expect(deriveAgent(root({ permissions: 'admin' })).permissions).toBe('readonly');
  });

  it('has an id of its own, one level more, and one level less to give', () => {
    const parent = root({ recursionDepth: 2 });
    const child = deriveAgent(parent);
    expect(child).toMatchObject({ depth: 1, parent, principal: 'p' });
    expect(child.agentId).not.toBe(parent.agentId);
    const grandchild = deriveAgent(child);
    expect(grandchild).toMatchObject({ depth: 2, parent: child });
    expect(() => deriveAgent(grandchild)).toThrow('recursion limit');
  });

  it('may be nested four levels deep unless told otherwise', () => {
    let agent = root();
    for (let level = 0; level < 4; level += 1) agent = deriveAgent(agent);
    expect(() => deriveAgent(agent)).toThrow('recursion limit');
  });

  it.each<[string, Agent, SubAgentOptions, string]>([
    ['a higher tier', root({ permissions: 'write' }), { permissions: 'admin' }, 'permissions'],
    [
      'mutations under a parent without',
      root({ allowMutations: false }),
      { allowMutations: true },
      'mutations',
    ],
    ['another tenant', root({ tenantId: 'acme' }), { tenantId: 'other' }, 'tenant'],
    ['classes the parent has none of', root({ classes: ['Post'] }), { classes: ['Author'] }, 'classes'],
    [
      'to leave client mode',
      root({ clientMode: true }, sessionIdentity('r:1')),
      { clientMode: false },
      'client_mode',
    ],
    ['client mode with the master key', root(), { clientMode: true }, 'identity'],
    ['client mode with an asserted user', root(), { clientMode: true, identity: USER }, 'identity'],
  ])('is refused %s', (_, parent, options, rule) => {
    expect(() => deriveAgent(parent, options)).toThrow(SubAgentError);
    expect(() => deriveAgent(parent, options)).toThrow(expect.objectContaining({ rule }));
  });

  it('names both sets of classes that have none in common', () => {
    expect(() => deriveAgent(root({ classes: ['Post', 'User'] }), { classes: ['Author'] })).toThrow(
      /\[Author\].*\[Post, _User\]/,
    );
  });

  it('is made by an agent and by nothing that looks like one', () => {
    expect(() => deriveAgent(structuredClone({ definition: {}, identity: USER }) as Agent)).toThrow(
      'parent must be an agent',
    );
  });

  it('cannot be made around the narrowing, with a definition of its own', () => {
    const parent = root({ tools: ['list_tools'] });
    const wide = compileAgentDefinition('wide', { permissions: 'admin' });
    expect(() => new Agent({ definition: wide, principal: 'p', parent })).toThrow('narrowed');
    expect(() => new Agent({ definition: deriveAgent(parent).definition, principal: 'p' })).toThrow(
      'narrowed',
    );
  });

  it('inherits identity, tenant, mutations and client mode when nothing is given', () => {
    const parent = root({ tenantId: 'acme', allowMutations: false }, USER);
    expect(deriveAgent(parent)).toMatchObject({ identity: USER, tenantId: 'acme' });
    expect(deriveAgent(parent).definition.allowMutations).toBe(false);
    const client = root({ clientMode: true, allowMutations: true }, sessionIdentity('r:1'));
    expect(deriveAgent(client).definition).toMatchObject({ clientMode: true, allowMutations: true });
  });

  it('takes an empty session token for none, and an empty tenant too', () => {
    const child = deriveAgent(root({ tenantId: 'acme' }, USER), {
      identity: sessionIdentity(''),
      tenantId: ' ',
    });
    expect(child).toMatchObject({ identity: USER, tenantId: 'acme' });
  });

  it('lets a bare method name and a qualified one meet in the qualified one', () => {
    const { methods } = deriveAgent(root({ methods: ['publish', 'User.ban'] }), {
      methods: ['Post.publish', '_User.ban', 'ban', 'Post.archive'],
    }).definition;
    expect([...(methods.only ?? [])].sort()).toEqual(['Post.publish', '_User.ban']);
  });

  it('acts within the request of its parent', () => {
    const updates: unknown[] = [];
    const context = new McpRequest(root(), {
      signal: new AbortController().signal,
      correlationId: 'c-1',
      progress: (update: unknown) => updates.push(update),
    });
    const child = deriveAgent(context.agent);
    const inner = context.with({ agent: child });
    inner.progress({ progress: 1 });
    expect(inner).toMatchObject({ agent: child, signal: context.signal, correlationId: 'c-1' });
    expect(updates).toEqual([{ progress: 1 }]);
  });

  it('spends its parent’s calls, and its own budget within them', async () => {
    const parent = root({ rateLimit: 2 });
    expect(deriveAgent(parent).definition.rateLimiter).toBe(parent.definition.rateLimiter);
    const child = deriveAgent(parent, { rateLimit: 1 });
    expect(await child.definition.rateLimiter.check('p')).toBeNull();
    expect(await child.definition.rateLimiter.check('p')).toMatchObject({ limit: 1 });
    expect(await parent.definition.rateLimiter.check('p')).toMatchObject({ limit: 2 });
    expect(await deriveAgent(parent, { rateLimit: 100 }).definition.rateLimiter.check('p')).toMatchObject({
      limit: 2,
    });
  });
});

const NAMES = ['Post', 'Author', 'User', '_User', 'Song'];
const METHODS = ['publish', 'ban', 'Post.publish', 'User.ban', '_User.ban'];
const list = (names: readonly string[]) => fc.option(fc.subarray([...names]), { nil: undefined });
const filter = (names: readonly string[]) =>
  fc.record({ only: list(names), except: list(names) }, { requiredKeys: [] });
const options = fc.record(
  {
    permissions: fc.constantFrom(...TIERS),
    tools: filter(['query_class', 'aggregate', 'create_object']),
    classes: filter(NAMES),
    methods: filter(METHODS),
    tenantId: fc.constantFrom(null, '', 'acme', 'other', 7),
    allowMutations: fc.boolean(),
  },
  { requiredKeys: [] },
);
const permitsMethod = ({ definition }: Agent, className: string, name: string) =>
  definition.methods.permitsAny([name, `${className}.${name}`, `${className.replace(/^_/, '')}.${name}`]);

describe('a child of any parent, with any options', () => {
  it('the child never permits a tool, class, method, tier, tenant or mutation that the parent does not', () => {
    fc.assert(
      fc.property(options, options, options, (top, middle, bottom) => {
        let parent = root(top);
        for (const options of [middle, bottom]) {
          let child: Agent;
          try {
            child = deriveAgent(parent, options);
          } catch (error) {
            // A refused option is narrower than any permitted one.
            expect(error).toBeInstanceOf(SubAgentError);
            return;
          }
          expect(tierCovers(parent.permissions, child.permissions)).toBe(true);
          for (const tool of ['query_class', 'aggregate', 'create_object', 'other'])
            if (child.definition.tools.permits(tool))
              expect(parent.definition.tools.permits(tool)).toBe(true);
          for (const name of ['Post', 'Author', '_User', 'Song', 'Other'])
            if (child.definition.classes.permits(name))
              expect(parent.definition.classes.permits(name)).toBe(true);
          for (const className of ['Post', 'Author', '_User'])
            for (const name of ['publish', 'ban', 'other'])
              if (permitsMethod(child, className, name))
                expect(permitsMethod(parent, className, name)).toBe(true);
          if (child.definition.allowMutations) expect(parent.definition.allowMutations).toBe(true);
          if (parent.tenantId !== null && parent.tenantId !== '')
            expect(child.tenantId).toBe(parent.tenantId);
          parent = child;
        }
      }),
    );
  });

  it('a tool that both permit is not lost on the way', () => {
    fc.assert(
      fc.property(
        filter(['a', 'b', 'c']),
        filter(['a', 'b', 'c']),
        fc.constantFrom('a', 'b', 'c', 'd'),
        (outer, own, tool) => {
          const both = deriveAgent(root({ tools: outer }), { tools: own }).definition.tools;
          const [one, other] = [outer, own].map((tools) => compileAgentDefinition('x', { tools }).tools);
          expect(both.permits(tool)).toBe(one?.permits(tool) === true && other?.permits(tool) === true);
        },
      ),
    );
  });
});

describe('the permission to count facets', () => {
  const rootOf = (masterAtlas?: boolean | null) =>
    new Agent({
      definition: compileAgentDefinition('root', masterAtlas === undefined ? {} : { masterAtlas }),
      principal: 'p',
    });

  it('is off unless given, and a parent hands it down unless the child declines', () => {
    expect(rootOf().definition.masterAtlas).toBe(false);
    expect(rootOf(null).definition.masterAtlas).toBe(false);
    expect(deriveAgent(rootOf(true)).definition.masterAtlas).toBe(true);
    expect(deriveAgent(rootOf(true), { masterAtlas: null }).definition.masterAtlas).toBe(true);
    expect(deriveAgent(rootOf(true), { masterAtlas: false }).definition.masterAtlas).toBe(false);
    expect(deriveAgent(rootOf(false)).definition.masterAtlas).toBe(false);
  });

  it('is never gained by a sub-agent', () => {
    expect(() => deriveAgent(rootOf(false), { masterAtlas: true })).toThrow(
      expect.objectContaining({ rule: 'master_atlas' }),
    );
  });
});
