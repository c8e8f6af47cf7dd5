import { Injectable } from '@nestjs/common';
import { AgentMethod, ParleyModule, ParseClass, Prompt, Tool, type ToolCall } from '@parley/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';
import { TestingDatabase } from './testing-database.js';

/** What untyped code writes. */
const wrong = <T>(options: object): T => options as T;

type Use = (call: ToolCall) => Promise<unknown>;
let use: Use;
const UNGOVERNED = { where: {} };

@Injectable()
class Tries {
  @Tool({ name: 'try_it', description: 'What the test says.', permission: 'write', needs: ['rows'] })
  async tryIt(_: unknown, call: ToolCall) {
    try {
      return { answer: await use(call) };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
}

describe('An option with a wrong name is an error that names the right one', () => {
  let app: TestingApplication;
  beforeAll(async () => {
    app = await createTestingApplication({
      seed: { objects: { Post: [{ title: 'a' }, { title: 'b' }] } },
      policy: { classes: { Post: {} } },
      agents: { editor: { permissions: 'write' } },
      gates: 'open',
      tools: [Tries],
    });
  });
  afterAll(() => app.close());

  const tryCall = async (given: Use) => {
    use = given;
    return (await app.as('editor').call('try_it')).data as { error?: string; answer?: unknown };
  };

  it.each<[string, Use, RegExp]>([
    [
      'filter',
      ({ records }) => records.find('Post', wrong({ filter: {} })),
      /records\.find: .*'filter': write 'where'/,
    ],
    ['wher', ({ records }) => records.find('Post', wrong({ wher: {} })), /write 'where'/],
    [
      'sort',
      ({ records }) => records.page('Post', wrong({ sort: 'title' })),
      /records\.page: .*write 'order'/,
    ],
    [
      'select',
      ({ records }) => records.get('Post', 'x', wrong({ select: 'a' })),
      /records\.get: .*write 'keys'/,
    ],
    ['populate', ({ records }) => records.getMany('Post', [], wrong({ populate: 'a' })), /write 'include'/],
    [
      'query',
      ({ records }) => records.count('Post', wrong({ query: {} })),
      /records\.count: .*write 'where'/,
    ],
    [
      'limit',
      ({ records }) => records.count('Post', wrong({ limit: 1 })),
      /records\.count: unknown option 'limit'/,
    ],
    ['match', ({ records }) => records.aggregate('Post', [], wrong({ match: {} })), /write 'where'/],
    ['filters', ({ records }) => records.explain('Post', wrong({ filters: {} })), /write 'where'/],
    [
      'where',
      ({ search }) => search.text('Post', wrong({ query: 'a', limit: 1, where: {} })),
      /search\.text: unknown option 'where'/,
    ],
    [
      'a list',
      ({ records }) => records.find('Post', wrong([{ title: 'a' }])),
      /expected an object with options/,
    ],
    ['null', ({ records }) => records.find('Post', null as never), /expected an object with options/],
    [
      'key',
      (call) =>
        (call as never as { writes: { create(...all: unknown[]): Promise<unknown> } }).writes.create(
          'Post',
          {},
          { idempotency_key: 'a' },
        ),
      /writes\.create: .*write 'idempotencyKey'/,
    ],
  ])('in the data access of a call: %s', async (_, given, message) => {
    const { error, answer } = await tryCall(given);
    expect(answer).toBeUndefined();
    expect(error).toMatch(message);
  });

  it('in what an application asks of Parley', async () => {
    const agent = app.parley.agentFor({ agent: 'editor', principal: 'p' });
    await expect(app.parley.handle({}, agent, wrong({ correlation_id: 'a' }))).rejects.toThrow(
      /write 'correlationId'/,
    );
    await expect(app.parley.listen(wrong({ standalone: true, ports: 1 }))).rejects.toThrow(/write 'port'/);
    expect(() => app.parley.agentFor(wrong({ agnet: 'editor' }))).toThrow(/agnet/);
    expect(UNGOVERNED).toBeDefined();
  });

  it.each<[string, () => unknown, RegExp]>([
    [
      '@Tool',
      () =>
        Tool(wrong({ name: 'a', description: 'b', inputSchema: {} }))(Tries.prototype, 'x', {
          value: () => 1,
        }),
      /write 'input'/,
    ],
    ['@Prompt', () => Prompt(wrong({ name: 'a', description: 'b', args: [] })), /write 'arguments'/],
    ['@ParseClass', () => ParseClass('Post', wrong({ hiden: true })), /write 'hidden'/],
    ['forFeature', () => ParleyModule.forFeature([Tries], wrong({ instanse: 'a' })), /write 'instance'/],
  ])('in a declaration: %s', (_, declare, message) => {
    expect(declare).toThrow(message);
  });

  it('in the options of tests, which would prove nothing', async () => {
    await expect(createTestingApplication(wrong({ polcy: {} }))).rejects.toThrow(/polcy.*policy/s);
    await expect(createTestingApplication(wrong({ gates: { all: true } }))).rejects.toThrow(/all/);
    await expect(createTestingApplication(wrong({ database: { uri: 'mongodb://a' } }))).rejects.toThrow(
      /uri/,
    );
    await expect(TestingDatabase.start(wrong({ object: {} }))).rejects.toThrow(/object/);
    expect(() => app.as('editor', wrong({ tennantId: 'a' }))).toThrow(/'tennantId'; there are: .*tenantId/);
  });
});

@ParseClass('Post')
class MisspelledMethod {
  @AgentMethod(wrong({ permision: 'admin' }))
  touch() {
    return {};
  }
}

describe('The start ends for an option with a wrong name', () => {
  it.each([
    ['of @AgentMethod', { tools: [MisspelledMethod] }, /write 'permission'/],
    [
      'of a class declaration',
      { classes: [{ className: 'Post', config: { hiden: true } }] },
      /write 'hidden'/,
    ],
  ])('%s', async (_, options, message) => {
    await expect(createTestingApplication(wrong(options))).rejects.toThrow(message);
  });
});
