import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  AgentFields,
  AgentMethod,
  type MethodCall,
  ParseClass,
  type RowWritingCall,
  Tool,
  type ToolCall,
} from '@parley/server';
import { createTestingApplication, type TestingApplication, type TestingOptions } from '@parley/testing';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';

type Args = Record<string, unknown>;

/** An application's own actions on posts, as it would ship them. */
@ParseClass('Post', { fields: ['title', 'author', 'status', 'likes', 'tags', 'contract', 'internal_note'] })
@AgentFields('title', 'author', 'status', 'likes', 'tags', 'contract', 'internalNote')
@Injectable()
class PostMethods {
  static readonly ran: string[] = [];

  @AgentMethod({
    description: 'Takes a post off the front page',
    permission: 'write',
    type: 'instance',
    permittedKeys: ['reason'],
    parameters: { type: 'object', properties: { reason: { type: 'string' } } },
  })
  async archive({ reason }: Args, call: MethodCall) {
    PostMethods.ran.push('archive');
    const row = await call.writes?.update('Post', call.objectId, { status: 'draft' });
    return { was: call.receiver?.['title'], now: row?.['status'], reason };
  }

  @AgentMethod({ permission: 'write', type: 'instance', supportsDryRun: true })
  async publish(args: Args, call: MethodCall) {
    PostMethods.ran.push(`publish:${String(call.dryRun)}`);
    if (call.dryRun) return { would: 'publish', args, canWrite: call.writes !== null };
    const row = await call.writes?.update('Post', call.objectId, { status: 'live' });
    return { status: row?.['status'] };
  }

  @AgentMethod({ permission: 'admin' })
  async purge(_args: Args, call: MethodCall) {
    PostMethods.ran.push('purge');
    await call.writes?.delete('Post', 'p59');
    return 'done';
  }

  @AgentMethod({ description: 'What this method was given' })
  seen(args: Args, call: MethodCall) {
    return { args, agent: call.agent?.definition.name ?? null, writes: call.writes, receiver: call.receiver };
  }

  @AgentMethod({ agent: true })
  who(_args: Args, call: MethodCall) {
    return { agent: call.agent?.definition.name };
  }

  @AgentMethod({})
  everything() {
    return [
      { __type: 'Object', className: 'Author', objectId: 'a1', name: 'Ann', ssn: SECRET },
      { deep: { className: 'Contract', objectId: 'c1', clause: SECRET } },
      new Map([['user', { className: '_User', username: 'ada', _hashed_password: SECRET, email: SECRET }]]),
      { className: 'Author', objectId: 'a1', bio: 'Tea', ACL: { '*': {} }, secretNote: SECRET },
      `Contract$${SECRET}`,
      { at: new Date(0), big: 10n, self: new PostMethods() },
    ];
  }

  @AgentMethod({})
  broken(): never {
    throw new Error(SECRET);
  }
}

const openDoors = (call: ToolCall, doors: readonly string[]) =>
  doors.filter((door) => Reflect.get(call, door) !== undefined);

/** Tools of the application: one that reads, one that says it writes, one that would like to call itself readonly. */
@Injectable()
class PostTools {
  @Tool({ name: 'doors', description: 'What a tool holds that asked for nothing' })
  doors(_args: Args, call: ToolCall) {
    return openDoors(call, ['records', 'writes', 'classes', 'methods']);
  }

  @Tool({
    name: 'retitle',
    description: 'Writes through the governed door',
    permission: 'write',
    input: { type: 'object', properties: { id: { type: 'string' } } },
    needs: ['rows'],
  })
  async retitle(args: Args, call: RowWritingCall) {
    const doors = openDoors(call, ['writes', 'classes', 'methods']);
    return { doors, row: await call.writes.update('Post', args['id'], { title: 'Retitled' }) };
  }
}

const AGENTS = {
  reader: {},
  writer: { permissions: 'write' },
  admin: { permissions: 'admin' },
  picky: { permissions: 'write', methods: { except: ['Post.archive', 'who'] } },
  only: { permissions: 'write', methods: { only: ['seen'] } },
  foreign: { permissions: 'write', tenantId: 'globex' },
};
type Agent = keyof typeof AGENTS;

/** The application's providers over the posts. */
function start(gates: TestingOptions['gates'], policy: object = {}) {
  const agents = Object.fromEntries(
    Object.entries(AGENTS).map(([name, options]) => [name, { tenantId: 'acme', ...options }]),
  ) as TestingOptions['agents'];
  return createTestingApplication({
    seed: POSTS_SEED,
    policy: { ...POSTS_POLICY, ...policy },
    agents,
    gates,
    tools: [PostMethods, PostTools],
  });
}

let open: TestingApplication;
let closed: TestingApplication;
beforeAll(async () => {
  open = await start({ PARSE_AGENT_ALLOW_WRITE_TOOLS: true, PARSE_AGENT_ALLOW_SCHEMA_OPS: true });
  closed = await start({});
});
afterAll(async () => {
  await open.close();
  await closed.close();
});

/** What the agent receives of a call, an error included. */
async function tool(agent: Agent, name: string, args: Args = {}, app = open) {
  const attempt = await app.as(agent).attempt(name, args);
  if (!attempt.allowed) {
    const { text, code, details } = attempt.refusal;
    return { isError: true, data: {} as Args, text, code, details };
  }
  const { data, text } = attempt.result;
  return { isError: false, data, text, code: undefined, details: undefined };
}

const call = (agent: Agent, method: string, more: Args = {}, app = open) =>
  tool(agent, 'call_method', { class_name: 'Post', method_name: method, ...more }, app);
const ran = async (work: () => Promise<unknown>) => {
  PostMethods.ran.length = 0;
  await work();
  return [...PostMethods.ran];
};

const shown = async (agent: Agent, app: TestingApplication) =>
  (await app.as(agent).listTools()).map(({ name }) => name);

describe('call_method', () => {
  it('runs a declared method on an object, and its writes obey the agent’s rules', async () => {
    const answer = await call('writer', 'archive', { object_id: 'p01', arguments: { reason: 'old' } });
    expect(answer.data).toEqual({
      class_name: 'Post',
      method: 'archive',
      object_id: 'p01',
      result: { was: 'Post 1', now: 'draft', reason: 'old' },
    });
  });

  it('lists the methods of the agent’s tier in schemas, and what code narrows', async () => {
    const methods = async (agent: Agent) => {
      const answer = await tool(agent, 'get_schema', { class_name: 'Post' });
      expect(answer.data['agent_fields']).toEqual(['title', 'author', 'status', 'likes', 'tags', 'contract']);
      return (answer.data['agent_methods'] as { name: string }[]).map(({ name }) => name);
    };
    expect(await methods('reader')).toEqual(['seen', 'who', 'everything', 'broken']);
    expect(await methods('admin')).toContain('purge');
  });

  it('is listed for every tier, and refuses what was not declared', async () => {
    expect(await shown('reader', open)).toContain('call_method');
    expect((await call('reader', 'undeclared')).text).toContain("declares no method 'undeclared'");
    const other = await tool('reader', 'call_method', { class_name: 'Author', method_name: 'seen' });
    expect(other.code).toBe('invalid_argument');
  });

  it.each([
    ['class_name', { class_name: 'Contract' }, 'access_denied', 'not accessible'],
    ['class_name', { class_name: 'Nowhere' }, 'invalid_argument', 'Could not fetch'],
    ['method_name', { method_name: 'a.b' }, 'invalid_argument', 'identifier'],
    ['object_id', { object_id: '$ne' }, 'invalid_argument', 'object ids'],
    ['arguments', { arguments: 'x' }, 'invalid_argument', 'arguments must be an object'],
  ])('refuses a bad %s (%j)', async (_, more, code, text) => {
    const answer = await call('reader', 'seen', more);
    expect(answer).toMatchObject({ isError: true, code });
    expect(answer.text).toContain(text);
  });

  it('refuses what code hands over and cannot be copied', async () => {
    const { parley } = open;
    const seen = { class_name: 'Post', method_name: 'seen', arguments: { after: () => 1 } };
    const params = { name: 'call_method', arguments: seen };
    const agent = parley.agentFor({ agent: 'reader', principal: 'x' });
    const { body } = await parley.handle({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, agent);
    expect(JSON.stringify(body)).toContain('must hold data alone');
    expect(body?.['result']).toMatchObject({
      isError: true,
      _meta: { 'parse.error_code': 'invalid_argument' },
    });
  });

  it.each([
    'constructor',
    '__proto__',
    'toString',
    'EVAL',
    'exec',
    'send',
    'onModuleInit',
    'then',
    'hasOwnProperty',
  ])('never runs %s', async (name) => {
    const answer = await call('admin', name);
    expect(answer.code).toBe('invalid_argument');
    expect(answer.text).toContain('blocked for security reasons');
  });

  it('names the tier, then the method filter, then the environment', async () => {
    const tier = await call('reader', 'archive', { object_id: 'p01' }, closed);
    expect(tier).toMatchObject({ code: 'permission_denied' });
    expect(tier.text).toContain("'Post.archive' requires write permissions. Current level: readonly");
    const filtered = await call('picky', 'archive', { object_id: 'p01' }, closed);
    expect(filtered).toMatchObject({ code: 'tool_filtered' });
    expect(filtered.text).toContain("Method 'Post.archive' is not enabled for this agent instance");
    expect(filtered.text).toContain('methods: filter');
    const env = await call('writer', 'archive', { object_id: 'p01' }, closed);
    expect(env).toMatchObject({ code: 'access_denied' });
    for (const token of ['Write methods are disabled', 'PARSE_AGENT_ALLOW_WRITE_TOOLS=true', 'Post.archive'])
      expect(env.text).toContain(token);
    const admin = await call('admin', 'purge', {}, closed);
    for (const token of ['Admin methods are disabled', 'PARSE_AGENT_ALLOW_SCHEMA_OPS=true'])
      expect(admin.text).toContain(token);
    expect((await call('reader', 'seen', {}, closed)).isError).toBe(false);
  });

  it('matches bare and qualified names of the method filter', async () => {
    expect((await call('picky', 'who')).code).toBe('tool_filtered');
    expect((await call('picky', 'seen')).isError).toBe(false);
    expect((await call('only', 'who')).code).toBe('tool_filtered');
    expect((await call('only', 'seen')).isError).toBe(false);
  });

  it.each([
    'ACL',
    'acl',
    'authData',
    'auth_data',
    'sessionToken',
    'session_token',
    '_hashed_password',
    '_rperm',
    'objectId',
    'id',
    'createdAt',
    'updated_at',
    'className',
    '__type',
  ])('never takes the argument %s', async (key) => {
    const answer = await call('reader', 'seen', { arguments: { [key]: 'x', fine: 1 } });
    expect(answer.code).toBe('invalid_argument');
    expect(answer.text).toContain(key);
    expect(answer.text).not.toContain('fine');
  });

  it('never takes credentials or row rights at any depth, but ids inside values', async () => {
    expect((await call('reader', 'seen', { arguments: { a: [{ b: { _wperm: [] } }] } })).code).toBe(
      'invalid_argument',
    );
    expect((await call('reader', 'seen', { arguments: { a: [{ objectId: 'x' }] } })).isError).toBe(false);
  });

  it('takes only permitted keys where they are declared', async () => {
    const answer = await call('writer', 'archive', {
      object_id: 'p02',
      arguments: { reason: 'x', force: true },
    });
    expect(answer).toMatchObject({ code: 'invalid_argument' });
    expect(answer.text).toContain('does not take: force');
  });

  it('passes the agent to methods that ask for it, and never one a caller made up', async () => {
    expect((await call('reader', 'who')).data['result']).toEqual({ agent: 'reader' });
    expect((await call('writer', 'seen', { arguments: { agent: 'admin', x: 1 } })).data['result']).toEqual({
      args: { x: 1 },
      agent: null,
      writes: null,
      receiver: null,
    });
  });

  it('needs an object of the agent for an instance method', async () => {
    expect((await call('writer', 'archive')).text).toContain('object_id is required');
    const missing = await call('foreign', 'archive', { object_id: 'p99' });
    const foreign = await call('foreign', 'archive', { object_id: 'p03' });
    expect(foreign).toMatchObject({ code: 'access_denied', details: { kind: 'tenant_scope' } });
    expect([missing.text.replaceAll('p99', 'p03'), missing.details]).toEqual([foreign.text, foreign.details]);
  });

  it('previews a method that cannot preview itself without running it', async () => {
    const names = await ran(async () => {
      const answer = await call('writer', 'archive', {
        object_id: 'p04',
        arguments: { reason: 'old', dry_run: true },
      });
      expect(answer.data).toMatchObject({
        class_name: 'Post',
        method: 'archive',
        object_id: 'p04',
        dry_run: true,
        supports_real_dry_run: false,
        would_call: {
          class: 'Post',
          method: 'archive',
          type: 'instance',
          object_id: 'p04',
          args: { reason: 'old' },
        },
      });
      const missing = await call('writer', 'archive', { object_id: 'none', arguments: { dry_run: true } });
      expect(missing.details).toMatchObject({ kind: 'tenant_scope' });
      const refused = await call('reader', 'archive', { object_id: 'p04', arguments: { dry_run: true } });
      expect(refused.code).toBe('permission_denied');
    });
    expect(names).toEqual([]);
  });

  it('lets a method preview itself, without anything to write with', async () => {
    const names = await ran(async () => {
      const preview = await call('writer', 'publish', { object_id: 'p06', arguments: { dry_run: true } });
      expect(preview.data['result']).toEqual({ would: 'publish', args: { dry_run: true }, canWrite: false });
      const real = await call('writer', 'publish', { object_id: 'p06', arguments: { dry_run: false } });
      expect(real.data['result']).toEqual({ status: 'live' });
    });
    expect(names).toEqual(['publish:true', 'publish:false']);
  });

  it('runs a method that cannot preview itself when dry_run is false, without the key', async () => {
    const answer = await call('writer', 'seen', { arguments: { dry_run: false, x: 1 } });
    expect(answer.data['result']).toMatchObject({ args: { x: 1 } });
  });

  it('takes anything that is not clearly no for a dry run', async () => {
    for (const dry_run of [1, 'false', {}, 0])
      expect((await call('reader', 'seen', { arguments: { dry_run } })).data).toHaveProperty('would_call');
  });

  it('cuts and redacts whatever a method returns', async () => {
    const answer = await call('admin', 'everything');
    expect(JSON.stringify(answer)).not.toContain(SECRET);
    expect(answer.data['result']).toEqual([
      { __type: 'Object', className: 'Author', objectId: 'a1', name: 'Ann' },
      { deep: { className: 'Contract', __redacted: true } },
      { user: { className: '_User', username: 'ada' } },
      { className: 'Author', objectId: 'a1', bio: 'Tea' },
      { className: 'Contract', __redacted: true },
      { at: '1970-01-01T00:00:00.000Z', big: '10', self: '[object Object]' },
    ]);
  });

  it('says nothing of what went wrong inside a method', async () => {
    const answer = await call('reader', 'broken');
    expect(answer).toMatchObject({ code: 'internal_error', text: 'call_method failed: internal error' });
    expect(JSON.stringify(answer)).not.toContain(SECRET);
  });
});

describe('a tool of the application', () => {
  it('holds a door to writing only when it said that it writes', async () => {
    expect(JSON.parse((await tool('reader', 'doors')).text)).toEqual(['records']);
    const written = JSON.parse((await tool('writer', 'retitle', { id: 'p10' })).text);
    expect(written).toMatchObject({ doors: ['writes'], row: { objectId: 'p10', title: 'Retitled' } });
    expect(JSON.stringify(written)).not.toContain(SECRET);
  });

  it('is closed by the environment when it writes, and not listed then', async () => {
    const refused = await tool('writer', 'retitle', { id: 'p10' }, closed);
    expect(refused).toMatchObject({ code: 'access_denied' });
    expect(refused.text).toBe(
      "Tool 'retitle' writes and is disabled. Required: PARSE_AGENT_ALLOW_WRITE_TOOLS=true",
    );
    expect(await shown('writer', closed)).toContain('doors');
    expect(await shown('writer', closed)).not.toContain('retitle');
  });

  it.each([
    ['rows', 'readonly', 'permission write'],
    ['classes', 'write', 'permission admin'],
  ] as const)('cannot need %s at tier %s', (need, permission, text) => {
    const declare = Tool({ name: 'sneaky', description: 'x', permission, needs: [need] });
    expect(() => declare({}, 'run', { value: () => null })).toThrow(text);
  });
});

describe('approval of declared methods', () => {
  it('is asked for by the tier of the method, and nobody to ask is a no', async () => {
    await using guarded = await start(
      { PARSE_AGENT_ALLOW_WRITE_TOOLS: true },
      { requireApprovalFor: ['write'] },
    );
    const names = await ran(async () => {
      expect((await call('writer', 'seen', {}, guarded)).isError).toBe(false);
      const refused = await call('writer', 'archive', { object_id: 'p01' }, guarded);
      expect(refused).toMatchObject({ code: 'approval_denied' });
    });
    expect(names).toEqual([]);
  });
});
