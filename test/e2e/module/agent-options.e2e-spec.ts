import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type INestApplication, Injectable, Logger, type Provider } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  AGENT_FACTORY,
  AgentOptionsError,
  ParseClass,
  Parley,
  ParleyModule,
  type ParleyModuleOptions,
  SubAgentError,
  Tool,
  type ToolCall,
} from '@parley/server';
import mongoose from 'mongoose';
import { deriveAgent } from '#core';
import { SubAgents, ToolRunner } from '@parley/server';
import { callTool, rpc } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const SEED = {
  schemas: [
    {
      className: 'Post',
      fields: { title: { type: 'String' }, orgId: { type: 'String' }, secret: { type: 'String' } },
    },
  ],
  users: [{ objectId: 'ada', username: 'ada', password: 'x' }],
  roles: [{ name: 'editors', users: ['ada'] }],
  objects: {
    Post: [
      { objectId: 'p1', title: 'ours', orgId: 'acme' },
      { objectId: 'p2', title: 'theirs', orgId: 'globex' },
      { objectId: 'p3', title: 'editors alone', orgId: 'acme', ACL: { 'role:editors': { read: true } } },
    ],
  },
};
const folder = makeFolder('agent-options');
writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));

const OPTIONS: ParleyModuleOptions = {
  database: { uri: 'embedded', seed: join(folder, 'seed.json') },
  agents: {
    plain: { rateLimit: 1_000_000 },
    ours: { rateLimit: 1_000_000, filters: { Post: { orgId: 'acme' } }, tenantId: 'acme' },
    ada: { rateLimit: 1_000_000, identity: { user: 'ada' } },
  },
  auth: ['plain', 'ours', 'ada'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy: { unlistedClasses: 'allow' },
};

/** What the next delegation is made with, and what came of it. */
let options: unknown = {};
let thrown: unknown = null;

@Injectable()
class Delegating {
  constructor(
    readonly agents: SubAgents,
    readonly runner: ToolRunner,
  ) {}

  @Tool({ name: 'delegates', description: 'Counts as a sub-agent', input: { type: 'object' } })
  async delegates(_: object, call: ToolCall) {
    thrown = null;
    try {
      const inner = await this.agents.delegate(call, options as never);
      const outcome = await this.runner.run('count_objects', { class_name: 'Post' }, inner);
      return { outcome };
    } catch (error) {
      thrown = error;
      throw error;
    }
  }
}
Reflect.defineMetadata('design:paramtypes', [SubAgents, ToolRunner], Delegating);

async function started(providers: readonly Provider[] = [], more: object = {}): Promise<INestApplication> {
  const { auth, ...rest } = OPTIONS;
  const chosen = providers.length > 0 ? rest : { ...rest, ...(auth && { auth }) };
  const builder = Test.createTestingModule({
    imports: [ParleyModule.forRoot({ ...chosen, ...more, providers: [...providers] as never })],
    providers: [Delegating],
  });
  const app = (await builder.compile()).createNestApplication(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  return app;
}

let app: INestApplication;
let parley: Parley;
let at: { url: string };
beforeAll(async () => {
  app = await started();
  Logger.overrideLogger(false);
  parley = app.get(Parley);
  at = { url: `${await app.getUrl()}/mcp` };
});
afterAll(() => app.close());

const inherited = (members: object) => Object.create(members) as object;
const parsed = (json: string) => JSON.parse(json) as object;

/** One mistake in the limits of an agent: the path of its option, and what is said of it. */
const LIMITS: readonly (readonly [what: string, options: unknown, path: string, message: RegExp])[] = [
  ['a misspelt option', { filter: { Post: { orgId: 'acme' } } }, 'filter', /did you mean 'filters'/],
  ['an option of one letter less', { class: ['Post'] }, 'class', /did you mean 'classes'/],
  ['a list of filters', { filters: [] }, 'filters', /must be .*object.*not a list/],
  ['no filters at all', { filters: null }, 'filters', /must be/],
  ['filters that are text', { filters: 'Post' }, 'filters', /must be/],
  [
    'a filter that is a list',
    { filters: { Post: [{ orgId: 'acme' }] } },
    'filters.Post',
    /constraint object/,
  ],
  ['a filter of nothing', { filters: { Post: null } }, 'filters.Post', /constraint object/],
  [
    'a filter with an operator that does not exist',
    { filters: { Post: { orgId: { $nq: 1 } } } },
    'filters.Post',
    /\$nq/,
  ],
  ['one class filtered twice', { filters: { User: {}, _User: { x: 1 } } }, 'filters._User', /same class/],
  ['a user as an option', { aclUser: 'ada' }, 'aclUser', /identity: \{ user/],
  ['a role as an option', { aclRole: 'editors' }, 'aclRole', /identity: \{ role/],
  ['a session as an option', { sessionToken: 'r:x' }, 'sessionToken', /identity: \{ session/],
  ['an impersonation as an option', { impersonateUser: 'ada' }, 'impersonateUser', /Impersonation/],
  ['a tenant by another name', { tenant: 'acme' }, 'tenant', /tenantId/],
  ['a tenant that is a list', { tenantId: ['acme'] }, 'tenantId', /a text, a number or null/],
  ['a tenant by claim, which only a file has', { tenantId: { claim: 'org' } }, 'tenantId', /a text/],
  ['a tier that does not exist', { permissions: 'root' }, 'permissions', /readonly, write, admin/],
  ['the tier by another name', { permission: 'readonly' }, 'permission', /permissions/],
  ['text for a switch', { clientMode: 'true' }, 'clientMode', /true or false/],
  ['text for another switch', { allowMutations: 'no' }, 'allowMutations', /true or false/],
  ['a wrong key of tools', { tools: { invalid: [] } }, 'tools.invalid', /accepted: only, except, profile/],
  ['one name for a list', { tools: 'query_class' }, 'tools', /a list/],
  ['a profile that does not exist', { tools: { profile: 'fat' } }, 'tools.profile', /lean/],
  ['a profile and a list', { tools: { profile: 'lean', only: [] } }, 'tools.only', /cannot be combined/],
  ['a wrong key of classes', { classes: { olny: ['Post'] } }, 'classes.olny', /did you mean 'only'/],
  [
    'a class of code that no database has',
    { classes: [class Loose {}] },
    'classes',
    /'Loose' has no @ParseClass/,
  ],
  ['such a class among others', { classes: { except: ['Post', class {}] } }, 'classes.except', /@ParseClass/],
  ['a number among names', { methods: [1] }, 'methods.0', /text/],
  ['a rate of nothing', { rateLimit: 0 }, 'rateLimit', /at least 1/],
  ['a limiter that is none', { rateLimiter: {} }, 'rateLimiter', /check/],
  [
    'a tool that does not exist',
    { tools: ['nope'], strictToolFilter: true },
    'tools',
    /no tool is named 'nope'/,
  ],
  ['a prototype', parsed('{"__proto__":{"tools":[]}}'), '__proto__', /refused everywhere/],
  ['a constructor', parsed('{"constructor":{}}'), 'constructor', /refused everywhere/],
  [
    'a prototype far inside',
    parsed('{"filters":{"Post":{"$or":[{"a":{"prototype":1}}]}}}'),
    'filters.Post.$or.0.a.prototype',
    /refused everywhere/,
  ],
  ['options that are inherited', inherited({ filters: { Post: { orgId: 'acme' } } }), '', /plain object/],
  ['a list of options', [], '', /must be an object/],
  ['options that are a function', () => ({}), '', /must be an object/],
];

const BUDGETS: typeof LIMITS = [
  ['a budget of nothing', { budget: { window: 60 } }, 'budget', /\w/],
  ['a budget of an unknown quantity', { budget: { tokens: 1 } }, 'budget.tokens', /unknown key/],
  ['an identity within the limits', { identity: { user: 'ada' } }, 'identity', /beside/],
];

function errorsOf(make: () => unknown): readonly { path: string; message: string }[] {
  try {
    make();
  } catch (error) {
    if (error instanceof AgentOptionsError) return error.errors;
    throw error;
  }
  throw new Error('an agent was made');
}

describe('an agent that code makes within limits of its own', () => {
  it.each([...LIMITS, ...BUDGETS])(
    'is not made of %s, which is reported once',
    (_, limits, path, message) => {
      const errors = errorsOf(() => parley.agentFor({ agent: limits as never, principal: 'nightly' }));
      expect(errors).toEqual([
        expect.objectContaining({
          path: path === '' ? 'agent' : `agent.${path}`,
          message: expect.stringMatching(message),
        }),
      ]);
    },
  );

  it.each<[string, object, string, RegExp]>([
    ['a misspelt identity', { agent: {}, identiy: { user: 'ada' } }, 'identiy', /did you mean 'identity'/],
    ['limits beside the agent', { agent: {}, filters: { Post: {} } }, 'filters', /agent: \{ filters/],
    [
      'two identities',
      { agent: {}, identity: { user: 'ada', role: 'editors' } },
      'identity',
      /mutually exclusive/,
    ],
    ['the master key', { agent: {}, identity: 'master' }, 'identity', /never the master key/],
    ['no identity', { agent: {}, identity: null }, 'identity', /left out/],
    [
      'an identity that is nobody',
      { agent: {}, identity: {} },
      'identity',
      /needs one of user, role, session/,
    ],
    ['a prototype', parsed('{"agent":{},"principal":"x","__proto__":{}}'), '__proto__', /refused/],
    ['no agent', { agent: null }, 'agent', /object/],
  ])('is not chosen with %s', (_, choice, path, message) => {
    const errors = errorsOf(() => parley.agentFor({ principal: 'nightly', ...choice } as never));
    expect(errors).toEqual([expect.objectContaining({ path, message: expect.stringMatching(message) })]);
  });

  it('is made of what the file takes, functions and limiters besides', () => {
    const agent = parley.agentFor({
      agent: {
        permissions: 'write',
        tools: { profile: 'lean' },
        classes: { except: ['_User'] },
        filters: { Post: ({ tenantId }) => ({ orgId: tenantId }), default: {} },
        rateLimiter: { check: () => Promise.resolve({ allowed: true }) } as never,
        tenantId: 'acme',
        masterAtlas: null,
        budget: null,
      },
      principal: 'nightly',
      identity: { role: 'editors' },
      claims: { org: 'acme' },
      correlationId: 'nightly-1',
    });
    expect(agent.definition.filters.size).toBe(2);
    expect(agent.identity).toEqual({ kind: 'aclRole', role: 'editors' });
  });

  it('is not made of a class that does not exist, once the database has said so and names are strict', async () => {
    await parley.runner.run('get_all_schemas', {}, {} as never).catch(() => undefined);
    const misspelt = (strictClassFilter: boolean) => () =>
      parley.agentFor({
        agent: { filters: { Psot: { orgId: 'acme' } }, strictClassFilter },
        principal: 'nightly',
      });
    // The first asks the database, and those after it know.
    misspelt(false)();
    await expect
      .poll(() => errorsIfAny(misspelt(true)))
      .toEqual([
        expect.objectContaining({
          path: 'agent.filters.Psot',
          message: expect.stringContaining("did you mean 'Post'"),
        }),
      ]);
  });
});

@ParseClass('Post')
class PostRules {}

describe('classes of code', () => {
  const model = mongoose.model('Post', new mongoose.Schema({ title: String }));

  it.each<[string, object]>([
    ['a class with @ParseClass', { classes: [PostRules] }],
    ['a Mongoose model', { classes: { only: [model] } }],
  ])('narrow an agent as their names do: %s', async (_, limits) => {
    for (const make of [
      () => parley.agentFor({ agent: limits, principal: 'nightly' }),
      () => deriveAgent(parley.agentFor({ agent: 'plain', principal: 'nightly' }), limits),
    ]) {
      const agent = make();
      const count = (class_name: string) => parley.runner.run('count_objects', { class_name }, agent);
      expect(await count('Post')).toMatchObject({ ok: true });
      expect(await count('_User')).toMatchObject({
        ok: false,
        refusal: { details: { kind: 'class_filter' } },
      });
    }
    const denied = parley.agentFor({ agent: { classes: { except: [PostRules] } }, principal: 'nightly' });
    expect(await parley.runner.run('count_objects', { class_name: 'Post' }, denied)).toMatchObject({
      ok: false,
    });
  });

  it('narrow a named agent of forRoot, and end the start where no database has them', async () => {
    const chosen = await started([], { agents: { plain: { classes: [model] }, ours: {}, ada: {} } });
    const at = { url: `${await chosen.getUrl()}/mcp` };
    const key = { 'X-MCP-API-Key': 'key-of-plain' };
    expect(await callTool(at, 'count_objects', { class_name: 'Post' }, key)).toMatchObject({
      isError: false,
    });
    expect(await callTool(at, 'count_objects', { class_name: '_User' }, key)).toMatchObject({
      isError: true,
    });
    await chosen.close();
    const loose = started([], { agents: { plain: { classes: [class Loose {}] }, ours: {}, ada: {} } });
    await expect(loose).rejects.toThrow(/agents\.plain\.classes.*'Loose' has no @ParseClass/s);
  });
});

function errorsIfAny(make: () => unknown) {
  try {
    make();
    return [];
  } catch (error) {
    return (error as AgentOptionsError).errors;
  }
}

describe('a named agent that code chooses', () => {
  it.each<[string, object, string, RegExp]>([
    ['a misspelt identity', { identiy: { user: 'ada' } }, 'identiy', /did you mean 'identity'/],
    ['a misspelt tenant', { tenant: 'acme' }, 'tenant', /tenantId/],
    ['filters of its own', { filters: { Post: {} } }, 'filters', /named agent/],
    ['the master key', { identity: 'master' }, 'identity', /never the master key/],
    ['no identity', { identity: null }, 'identity', /never the master key/],
    ['two identities', { identity: { user: 'ada', session: 'r:x' } }, 'identity', /mutually exclusive/],
    [
      'an identity of agents',
      { identity: { kind: 'master' } },
      'identity.kind',
      /accepted: user, role, session/,
    ],
  ])('is not chosen with %s, by agentFor and by a factory', async (_, more, path, message) => {
    const choice = { agent: 'plain', principal: 'nightly', ...more } as never;
    const said = expect.objectContaining({ path, message: expect.stringMatching(message) });
    expect(errorsOf(() => parley.agentFor(choice))).toEqual([said]);
    const lines: string[] = [];
    const chosen = await started([{ provide: AGENT_FACTORY, useValue: () => choice }]);
    const hear = (line: unknown) => void lines.push(String(line));
    Logger.overrideLogger({ log: hear, warn: hear, error: hear });
    try {
      const reply = await rpc({ url: `${await chosen.getUrl()}/mcp` }, 'tools/list');
      expect(reply.status).toBe(500);
      expect(reply.text).not.toMatch(/identi|AGENT_FACTORY/);
      expect(lines.join('\n')).toMatch(/AGENT_FACTORY: /);
    } finally {
      Logger.overrideLogger(false);
      await chosen.close();
    }
  });
});

describe('a sub-agent', () => {
  const delegated = (agent: string, given: unknown) => {
    options = given;
    return callTool(at, 'delegates', {}, { 'X-MCP-API-Key': `key-of-${agent}` });
  };

  it.each([
    ...LIMITS,
    ['a budget, which is the root’s', { budget: { calls: 1 } }, 'budget', /root/] as const,
    ['no identity', { identity: null }, 'identity', /must be/] as const,
    ['a misspelt identity', { identiy: { user: 'ada' } }, 'identiy', /did you mean 'identity'/] as const,
    ['two identities', { identity: { user: 'a', role: 'b' } }, 'identity', /mutually exclusive/] as const,
    ['an unknown identity', { identity: { usr: 'a' } }, 'identity.usr', /did you mean 'user'/] as const,
    ['an empty session', { identity: { session: '' } }, 'identity.session', /text/] as const,
    ['text for an identity', { identity: 'ada' }, 'identity', /must be/] as const,
    ['an empty name', { name: '' }, 'name', /text/] as const,
  ])('is not made of %s', async (_, given, path, message) => {
    const answer = await delegated('ours', given);
    expect(answer.isError).toBe(true);
    expect(thrown).toBeInstanceOf(TypeError);
    const told = `sub-agent: ${path === '' ? '' : `${path}: `}`;
    expect((thrown as Error).message.startsWith(told)).toBe(true);
    expect((thrown as Error).message).toMatch(message);
    expect(answer.wire).not.toContain(told);
  });

  it.each<[string, unknown, number]>([
    ['a user', { user: 'ada' }, 3],
    ['a role', { role: 'editors' }, 3],
    ['a user who is nobody', { user: 'bob' }, 2],
    ['a user in the form of agents', { kind: 'aclUser', userId: 'ada' }, 3],
    ['the master key below the master key', 'master', 3],
  ])('takes %s as an identity', async (_, identity, count) => {
    const { text } = await delegated('plain', { identity });
    expect(thrown).toBeNull();
    expect(JSON.parse(text)).toMatchObject({ outcome: { ok: true, data: { count } } });
  });

  it.each<[string, unknown]>([
    ['the master key', 'master'],
    ['the master key in the form of agents', { kind: 'master' }],
    ['another user', { user: 'bob' }],
  ])('of a user is not %s', async (_, identity) => {
    const answer = await delegated('ada', { identity });
    expect(answer.isError).toBe(true);
    expect(thrown).toBeInstanceOf(SubAgentError);
  });
});
