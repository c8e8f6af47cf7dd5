import { describe, expect, it } from 'vitest';
import { kernelUnderTest, NOVEMBER, readResult, smallAgent } from '../contracts/kernel-under-test.js';

const { ask } = kernelUnderTest();
const refuse = (message: string) => ({ error: { code: -32602, message }, status: 200 });

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
    (readResult(await complete(...given)).completion as { values: string[] }).values;

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

  it('returns no more of a long list than a result holds, and says that there is more', async () => {
    const complete = async (typed: string) =>
      readResult(
        await ask(
          'completion/complete',
          {
            ref: prompt('parse_relations'),
            argument: { name: 'classes', value: typed },
          },
          { ...NOVEMBER, agent: smallAgent({ maxResultBytes: 4_096 }) },
        ),
      ).completion;
    const typed = `${'x'.repeat(2_000)},`;
    expect(await complete(typed)).toEqual({
      values: [`${typed}Post`, `${typed}Tag`],
      total: 5,
      hasMore: true,
    });
    expect(await complete(`${typed}${typed}${typed}`)).toEqual({ values: [], total: 5, hasMore: true });
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
    expect(readResult(await complete(prompt('recent_activity'), 'limit', '1')).completion).toEqual({
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
    expect(await complete(ref, argument, '')).toEqual(refuse(message));
  });
});
