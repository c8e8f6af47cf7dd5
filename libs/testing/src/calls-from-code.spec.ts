import { Injectable } from '@nestjs/common';
import {
  AgentMethod,
  Conversations,
  type LanguageModelError,
  type MethodCall,
  Parley,
  ParseClass,
  Tool,
  type ToolCall,
} from '@parley/server';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { McpRequest } from '#core';
import { type ModelServer, openAi, startModelServer, status } from '../../chat/src/contracts/model-server.js';
import { createTestingApplication } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';

let model: ModelServer;
let again: AbortSignal | undefined;

@Injectable()
@ParseClass('Post')
class Desk {
  constructor(private readonly conversations: Conversations) {}

  @Tool({ name: 'ask_model', description: 'Asks a model.' })
  async askModel(_: unknown, call: ToolCall) {
    again = call.signal;
    const talk = this.conversations.open(call, { model: settings() });
    return { text: (await talk.ask('How many?')).text };
  }

  @AgentMethod({ permission: 'write', type: 'instance' })
  async archive(_: unknown, call: MethodCall) {
    return call.writes?.update('Post', call.objectId, { status: 'archived' });
  }
}
Reflect.defineMetadata('design:paramtypes', [Conversations], Desk);

const settings = () => ({ provider: 'lmstudio', endpoint: `${model.url}/v1` });
const COUNT = [{ name: 'count_objects', args: { class_name: 'Post' } }];

let app: TestingApplication;
beforeAll(async () => {
  model = await startModelServer();
  app = await createTestingApplication({
    seed: {
      users: [{ objectId: 'ada', username: 'ada' }],
      roles: [{ name: 'editors', users: ['ada'] }],
      objects: {
        Post: [
          {
            objectId: 'p1',
            status: 'draft',
            ACL: { ada: { read: true, write: true }, 'role:editors': { read: true, write: true } },
          },
          { objectId: 'p2', status: 'draft', ACL: { ada: { read: true }, 'role:editors': { read: true } } },
        ],
      },
    },
    policy: { classes: { Post: {} } },
    agents: { clerk: { permissions: 'write' } },
    gates: 'open',
    tools: [Desk],
  });
});
beforeEach(() => app.reset());
afterAll(async () => {
  await app.close();
  await model.stop();
});

const clerk = () => app.parley.agentFor({ agent: 'clerk', principal: 'ada', correlationId: 'turn-7' });
const records = async () => (await app.audit.records()).map((record) => [record.tool, record.correlation_id]);

describe('A call from code', () => {
  it.each([
    ['an agent', () => clerk()],
    ['an agent among other members', () => ({ agent: clerk() })],
    ['an agent and a signal', () => ({ agent: clerk(), signal: new AbortController().signal })],
  ])('needs %s alone, and has the correlation id of the agent', async (_, caller) => {
    const outcome = await app.parley.runner.run('count_objects', { class_name: 'Post' }, caller());
    expect(outcome).toMatchObject({ ok: true, data: { count: 2 } });
    expect(app.parley.runner.list(caller()).length).toBeGreaterThan(5);
    expect(await records()).toEqual([['count_objects', 'turn-7']]);
  });

  it('ends with the signal that it is given', async () => {
    const outcome = await app.parley.runner.run(
      'list_tools',
      {},
      { agent: clerk(), signal: AbortSignal.abort('gone') },
    );
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'cancelled' } });
  });

  it.each([[{}], [null], ['clerk'], [{ agent: 'clerk' }]])(
    'is an error without an agent: %j',
    async (caller) => {
      await expect(app.parley.runner.run('list_tools', {}, caller as never)).rejects.toThrow(
        'expected an agent',
      );
    },
  );

  it('delegates as an agent alone', async () => {
    const inner = await app.parley.subAgents.delegate(clerk(), { permissions: 'readonly' });
    expect((await app.parley.runner.run('list_tools', {}, inner)).ok).toBe(true);
  });
});

describe('A conversation', () => {
  it('has the correlation id of its agent, or the one that it is given', async () => {
    for (const [options, expected] of [
      [{}, 'turn-7'],
      [{ correlationId: 'talk-1' }, 'talk-1'],
    ] as const) {
      model.script(openAi.calls(COUNT), openAi.says('Two.'));
      await app.parley.converse(clerk(), { model: settings(), ...options }).ask('How many?');
      expect((await records()).at(-1)).toEqual(['count_objects', expected]);
    }
  });

  it('within a tool belongs to the call: its records, its progress, its end', async () => {
    model.script(openAi.calls(COUNT), openAi.says('Two.'));
    const { data, progress, record } = await app.as('clerk').call('ask_model');
    expect(data).toEqual({ text: 'Two.' });
    expect(progress).toEqual([{ progress: 1, message: 'count_objects' }]);
    const ids = new Set((await records()).map(([, id]) => id));
    expect(ids).toEqual(new Set([record.correlation_id]));
    expect(again?.aborted).toBe(false);
  });

  it('within a call without a session is found by the id of its HTTP request', async () => {
    const agent = app.parley.agentFor({ agent: 'clerk', principal: 'ada' });
    const { signal } = new AbortController();
    model.script(openAi.calls(COUNT), openAi.says('Two.'));
    await app.parley.runner.run(
      'ask_model',
      {},
      new McpRequest(agent, { signal, httpRequestId: 'request-1' }),
    );
    const ids = (await app.audit.records()).map((record) => [record.tool, record.request_id]);
    expect(ids).toEqual([
      ['count_objects', 'request-1'],
      ['ask_model', 'request-1'],
    ]);
  });

  it('takes its model from the environment', () => {
    const { parley } = app;
    expect(() => parley.converse(clerk())).toThrow(/no provider of language models is set/);
    expect(() => parley.converse(clerk(), {})).toThrow(/LLM_PROVIDER/);
  });

  it('that fails tells which tools ran', async () => {
    model.script(openAi.calls(COUNT), status(400, '{"error":{"message":"no"}}'));
    const talk = app.parley.converse(clerk(), { model: settings() });
    const failure = await talk.ask('How many?').catch((error: unknown) => error as LanguageModelError);
    expect(failure).toMatchObject({
      name: 'LanguageModelError',
      toolCalls: [{ name: 'count_objects', failed: false }],
    });
  });

  it('counts usage from 0 again, and reports it for each turn', async () => {
    model.script(openAi.calls(COUNT), openAi.says('Two.'));
    const talk = app.parley.converse(clerk(), { model: settings() });
    const turns: (number | undefined)[] = [];
    await talk.ask('How many?', { onModelTurn: (_, usage) => turns.push(usage?.total) });
    expect(turns).toEqual([28, 15]);
    talk.resetUsage();
    expect(talk.usage.total).toBe(0);
    expect(talk.history).toHaveLength(2);
  });
});

describe('A declared method that writes', () => {
  const archive = (objectId: string) =>
    ['call_method', { class_name: 'Post', method_name: 'archive', object_id: objectId }] as const;

  it.each([
    ['a user', { user: 'ada' }],
    ['a role', { role: 'editors' }],
  ])('runs for %s, and writes what that may write', async (_, who) => {
    const caller = app.as('clerk', who);
    await caller.call(...archive('p1'));
    expect(await app.ungoverned.get('Post', 'p1')).toMatchObject({ status: 'archived' });
    await caller.expectRefused('parse_error', 'data', ...archive('p2'));
    expect(await app.ungoverned.get('Post', 'p2')).toMatchObject({ status: 'draft' });
  });

  it('is shown to them', async () => {
    const { text } = await app.as('clerk', { user: 'ada' }).call('get_schema', { class_name: 'Post' });
    expect(text).toContain('archive');
  });
});

describe('An application', () => {
  it('injects Parley and Conversations by their classes', () => {
    expect(app.get(Conversations)).toBe(app.get(Parley).get(Conversations));
  });
});
