import { describe, expect, it } from 'vitest';
import { kernelUnderTest, readResult } from '../contracts/kernel-under-test.js';
import { BUILT_IN_PROMPTS } from './built-in-prompts.js';
import { PromptRegistry } from './prompt-registry.js';
import type { Prompt } from './prompt.js';

const BUILT_IN = BUILT_IN_PROMPTS.map(({ name }) => name);

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
    const names = registry.all().map(({ name }) => name);
    expect(names).toEqual([...BUILT_IN, 'extra']);
    expect(registry.get('count_by')?.description).toBe('Custom');
    registry.reset();
    expect(registry.all().map(({ name }) => name)).toEqual(BUILT_IN);
  });

  it('offers no prompt about Parse where there is none', () => {
    const registry = new PromptRegistry(false);
    const names = () => registry.all().map(({ name }) => name);
    expect(names()).toEqual(BUILT_IN.filter((name) => !name.startsWith('parse_')));
    expect(registry.get('parse_conventions')).toBeUndefined();
    registry.reset();
    expect(names()).not.toContain('parse_conventions');
  });

  it('takes a prompt away again, once, and not the one that came in its place', () => {
    const registry = new PromptRegistry();
    let changes = 0;
    const subscription = registry.changes.subscribe(() => (changes += 1));
    const takeAway = registry.register(custom('extra'));
    takeAway();
    takeAway();
    expect(registry.get('extra')).toBeUndefined();
    const takeOldAway = registry.register(custom('extra'));
    const later = custom('extra');
    registry.register(later);
    takeOldAway();
    expect(registry.get('extra')).toBe(later);
    expect(changes).toBe(4);
    subscription.unsubscribe();
    registry.reset();
    expect(changes).toBe(4);
  });

  it('refuses a prompt without a name', () => {
    expect(() => new PromptRegistry().register(custom(''))).toThrow(TypeError);
  });

  it('serves what was registered, under its own description, within the size limit', async () => {
    const { ask: askOne, prompts } = kernelUnderTest();
    prompts.register(custom('extra'));
    expect(readResult(await askOne('prompts/get', { name: 'extra' }))).toEqual({
      description: 'Made here',
      messages: [{ role: 'user', content: { type: 'text', text: 'mine' } }],
    });
    prompts.register(custom('extra', 'x'.repeat(4_194_305)));
    expect(await askOne('prompts/get', { name: 'extra' })).toMatchObject({
      error: { code: -32602, message: expect.stringMatching(/^Prompt output exceeded 4194304 bytes\./) },
    });
  });

  it.each([undefined, null, 5])('logs which prompt returned %s instead of a text', async (returned) => {
    const { ask: askOne, prompts, warnings } = kernelUnderTest();
    prompts.register({ ...custom('extra'), render: () => returned as never });
    expect(await askOne('prompts/get', { name: 'extra' })).toMatchObject({ error: { code: -32603 } });
    expect(warnings).toEqual([
      expect.stringMatching(
        /^prompts\/get extra failed: TypeError: the prompt 'extra' returns no text.*\n +at /,
      ),
    ]);
  });
});
