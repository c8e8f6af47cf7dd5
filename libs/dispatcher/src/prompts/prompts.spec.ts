import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { kernelUnderTest, NOVEMBER, resultOf, smallAgent } from '../contracts/kernel-under-test.js';
import type { DispatchContext } from '../dispatch-context.js';
import type { Prompt } from './prompt.js';
import { PromptRegistry } from './prompt-registry.js';

const BUILT_IN = [
  'parse_conventions',
  'parse_relations',
  'explore_database',
  'class_overview',
  'count_by',
  'recent_activity',
  'find_relationship',
  'created_in_range',
];

const { ask } = kernelUnderTest();
const get = (name: unknown, args?: unknown, context?: Partial<DispatchContext>) =>
  ask('prompts/get', { name, arguments: args }, context);

async function textOf(name: string, args?: unknown, context?: Partial<DispatchContext>): Promise<string> {
  const { messages } = resultOf(await get(name, args, context)) as {
    messages: { role: string; content: { type: string; text: string } }[];
  };
  expect(messages).toHaveLength(1);
  return messages[0]?.content.text ?? '';
}

const refused = (message: string) => ({ error: { code: -32602, message }, status: 200 });

describe('prompts/list', () => {
  it('lists the built-in prompts in their order', async () => {
    const { prompts } = resultOf(await ask('prompts/list')) as {
      prompts: { name: string; arguments: unknown[] }[];
    };
    expect(prompts.map(({ name }) => name)).toEqual(BUILT_IN);
    expect(prompts[5]).toEqual({
      name: 'recent_activity',
      description: expect.any(String),
      arguments: [
        { name: 'class_name', description: expect.any(String), required: true },
        { name: 'limit', description: expect.any(String), required: false },
      ],
    });
  });
});

describe('prompts/get', () => {
  it('describes a rendered prompt by its name', async () => {
    expect(resultOf(await get('explore_database'))).toMatchObject({
      description: 'Parse analytics prompt: explore_database',
      messages: [{ role: 'user', content: { type: 'text' } }],
    });
  });

  it('refuses what it does not know', async () => {
    expect(await get('nope')).toEqual(refused('Unknown prompt: nope'));
    expect(await get(undefined)).toEqual(refused('Missing prompt name'));
    expect(await get('constructor')).toEqual(refused('Unknown prompt: constructor'));
    expect(await get('count_by', [])).toEqual(refused('Invalid params'));
  });

  it.each([
    ['class_overview', {}, 'missing required argument: class_name'],
    ['class_overview', { class_name: '' }, 'missing required argument: class_name'],
    [
      'class_overview',
      { class_name: 'Po st' },
      'class_name must match ^[A-Za-z_][A-Za-z0-9_]{0,127}$ (got: "Po st")',
    ],
    ['class_overview', { class_name: {} }, 'class_name must be a string'],
    ['count_by', { class_name: 'Post' }, 'missing required argument: group_by'],
    [
      'find_relationship',
      { parent_class: 'Post', parent_id: 'a-b', child_class: 'Tag', pointer_field: 'post' },
      'parent_id must be an alphanumeric objectId (got: "a-b")',
    ],
    [
      'created_in_range',
      { class_name: 'Post', since: '2025-01-01' },
      'since must be a valid ISO8601 timestamp (got: "2025-01-01")',
    ],
    [
      'created_in_range',
      { class_name: 'Post', since: '2025-02-30T00:00:00Z' },
      'since must be a valid ISO8601 timestamp (got: "2025-02-30T00:00:00Z")',
    ],
    [
      'created_in_range',
      { class_name: 'Post', since: '2025-02-28T00:00:00Z', until: 'soon' },
      'until must be a valid ISO8601 timestamp (got: "soon")',
    ],
  ])('%s refuses %j', async (name, args, message) => {
    expect(await get(name, args)).toEqual(refused(message));
  });

  it('counts by a field, nulls and pointer keys explained', async () => {
    const text = await textOf('count_by', { class_name: 'Post', group_by: 'author' });
    expect(text).toContain(
      '[{"$group":{"_id":"$author","count":{"$sum":1}}},{"$sort":{"count":-1}},{"$limit":25}]',
    );
    expect(text).toContain('Class$objectId');
  });

  it.each([
    [undefined, 10],
    ['7', 7],
    [7, 7],
    ['0', 10],
    ['-3', 10],
    ['many', 10],
    ['1000', 100],
  ])('reads the limit %j as %i', async (limit, meant) => {
    expect(await textOf('recent_activity', { class_name: 'Post', limit })).toContain(`limit ${meant}.`);
  });

  it('writes the pointer filter of a relationship', async () => {
    const text = await textOf('find_relationship', {
      parent_class: 'Post',
      parent_id: 'p1',
      child_class: 'Comment',
      pointer_field: 'post',
    });
    expect(text).toContain('{"post":{"__type":"Pointer","className":"Post","objectId":"p1"}}');
    expect(text).toContain('limit 20');
  });

  it('normalises a range to UTC milliseconds, and leaves out an end nobody gave', async () => {
    const since = '2025-01-01T02:00:00+02:00';
    const open = await textOf('created_in_range', { class_name: 'Post', since });
    expect(open).toContain('{"createdAt":{"$gte":{"__type":"Date","iso":"2025-01-01T00:00:00.000Z"}}}');
    const closed = await textOf('created_in_range', {
      class_name: 'Post',
      since,
      until: '2025-02-01T00:00:00Z',
    });
    expect(closed).toContain('"$lt":{"__type":"Date","iso":"2025-02-01T00:00:00.000Z"}');
  });

  it('names the rules that no tool result may change', async () => {
    const text = await textOf('parse_conventions');
    for (const secret of [
      '_hashed_password',
      'sessionToken',
      '_perishable_token',
      '_rperm',
      '_wperm',
      'authData',
    ]) {
      expect(text).toContain(secret);
    }
    expect(text).toContain('untrusted');
  });

  it('never lets an argument that passed break out of the JSON it stands in', async () => {
    const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,20}$/);
    await fc.assert(
      fc.asyncProperty(name, name, async (class_name, group_by) => {
        const text = await textOf('count_by', { class_name, group_by });
        const pipeline = JSON.parse(text.slice(text.indexOf('[{'), text.indexOf('}]') + 2)) as unknown[];
        expect(pipeline[0]).toEqual({ $group: { _id: `$${group_by}`, count: { $sum: 1 } } });
      }),
      { numRuns: 50 },
    );
  });
});

describe('parse_relations', () => {
  it('draws readable relations among classes the agent may know', async () => {
    const text = await textOf('parse_relations');
    expect(text).toContain('_User ─1:N→ Post   (Post.author)');
    expect(text).toContain('Post  ─N:M→ Tag    (Post.tags)');
    expect(text).toContain('_Role ─N:M→ _User  (_Role.users)');
  });

  it('never shows a hidden target, an unreadable field or an internal class', async () => {
    const text = await textOf('parse_relations');
    expect(text).not.toContain('Hidden');
    expect(text).not.toContain('reviewer');
    expect(text).not.toContain('_Session');
  });

  it('never shows a class outside the agent’s filter', async () => {
    const agent = smallAgent({ classes: { except: ['Tag'] } });
    expect(await textOf('parse_relations', {}, { agent })).not.toContain('Tag');
  });

  it('keeps of a subset only relations with both ends in it', async () => {
    const text = await textOf('parse_relations', { classes: 'Post, User' });
    expect(text).toContain('limited to');
    expect(text).toContain('(Post.author)');
    expect(text).not.toContain('Post.tags');
  });

  it('hints at spelling when a subset matched nothing', async () => {
    const text = await textOf('parse_relations', { classes: '_user' });
    expect(text).toContain('(no class relations defined)');
    expect(text).toContain('_User, not _user');
  });
});

describe('PromptRegistry', () => {
  const custom = (name: string, text = 'mine'): Prompt => ({
    name,
    description: 'Custom',
    arguments: [],
    render: () => ({ description: 'Made here', text }),
  });

  it('replaces a prompt where it stands and adds others at the end', () => {
    const registry = new PromptRegistry();
    registry.register(custom('extra'));
    registry.register(custom('count_by'));
    const names = registry.list().map(({ name }) => name);
    expect(names).toEqual([...BUILT_IN, 'extra']);
    expect(registry.get('count_by')?.description).toBe('Custom');
    registry.reset();
    expect(registry.list().map(({ name }) => name)).toEqual(BUILT_IN);
  });

  it('tells every listener of each change, also after one threw', () => {
    const faults: unknown[] = [];
    const registry = new PromptRegistry((fault) => faults.push(fault));
    let heard = 0;
    registry.onChange(() => {
      throw new Error('deaf');
    });
    const stop = registry.onChange(() => (heard += 1));
    registry.register(custom('extra'));
    registry.reset();
    stop();
    registry.reset();
    expect(heard).toBe(2);
    expect(faults).toHaveLength(3);
  });

  it('refuses a prompt without a name', () => {
    expect(() => new PromptRegistry().register(custom(''))).toThrow(TypeError);
  });

  it('serves what was registered, under its own description, within the size limit', async () => {
    const { ask: askOne, prompts } = kernelUnderTest();
    prompts.register(custom('extra'));
    expect(resultOf(await askOne('prompts/get', { name: 'extra' }))).toEqual({
      description: 'Made here',
      messages: [{ role: 'user', content: { type: 'text', text: 'mine' } }],
    });
    prompts.register(custom('extra', 'x'.repeat(4_194_305)));
    expect(await askOne('prompts/get', { name: 'extra' })).toMatchObject({
      error: { code: -32602, message: expect.stringMatching(/^Prompt output exceeded 4194304 bytes\./) },
    });
  });
});

describe('completion/complete', () => {
  const complete = async (
    ref: unknown,
    name: string,
    value: string,
    more: object = {},
    agent = smallAgent(),
  ) => {
    const params = { ref, argument: { name, value }, ...more };
    return ask('completion/complete', params, { ...NOVEMBER, agent });
  };
  const prompt = (name: string) => ({ type: 'ref/prompt', name });
  const values = async (...given: Parameters<typeof complete>) =>
    (resultOf(await complete(...given)).completion as { values: string[] }).values;

  it('completes class names the agent may know', async () => {
    expect(await values(prompt('class_overview'), 'class_name', 'p')).toEqual(['Post']);
    expect(await values({ type: 'ref/resource', uri: 'parse://{className}/count' }, 'className', '')).toEqual(
      ['Post', 'Tag', '_Role', '_Session', '_User'],
    );
    const agent = smallAgent({ classes: { except: ['Post'] } });
    expect(await values(prompt('class_overview'), 'class_name', 'P', {}, agent)).toEqual([]);
  });

  it('completes the last of several class names', async () => {
    expect(await values(prompt('parse_relations'), 'classes', 'Tag,po')).toEqual(['Tag,Post']);
  });

  it('completes readable fields of the class another argument names', async () => {
    const of = (argument: string, className: string) => ({
      context: { arguments: { [argument]: className } },
    });
    expect(await values(prompt('count_by'), 'group_by', '', of('class_name', 'Post'))).toEqual([
      'objectId',
      'title',
      'author',
      'tags',
      'secret',
    ]);
    expect(
      await values(prompt('find_relationship'), 'pointer_field', 'a', of('child_class', 'Post')),
    ).toEqual(['author']);
    expect(await values(prompt('count_by'), 'group_by', '', of('class_name', 'Hidden'))).toEqual([]);
    expect(await values(prompt('count_by'), 'group_by', '')).toEqual([]);
  });

  it('suggests nothing for an argument that takes any text', async () => {
    expect(resultOf(await complete(prompt('recent_activity'), 'limit', '1')).completion).toEqual({
      values: [],
      total: 0,
      hasMore: false,
    });
  });

  it.each([
    [prompt('nope'), 'class_name', 'Unknown prompt'],
    [prompt('count_by'), 'nope', 'Unknown argument'],
    [{ type: 'ref/resource', uri: 'parse://Post/count' }, 'className', 'Unknown resource template'],
    [{ type: 'ref/other' }, 'x', 'Invalid params'],
    [null, 'x', 'Invalid params'],
  ])('refuses %j %s', async (ref, argument, message) => {
    expect(await complete(ref, argument, '')).toEqual(refused(message));
  });
});
