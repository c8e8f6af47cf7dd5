import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Usage } from './answer.js';
import { readConversation, writeConversation } from './conversation-file.js';

const entry = fc.record({
  role: fc.constantFrom('user' as const, 'assistant' as const),
  content: fc.string({ unit: 'grapheme', maxLength: 60 }),
});
const same = (text: string) => text;
const file = (more: object) => JSON.stringify({ version: 1, conversation_history: [], ...more });
const message = (more: object) => file({ conversation_history: [{ role: 'user', content: 'x', ...more }] });

describe('the file of a conversation', () => {
  it('is read back as it was written', () => {
    fc.assert(
      fc.property(fc.array(entry), fc.nat(), fc.nat(), (history, prompt, completion) => {
        const usage = new Usage(prompt, completion, 0.5);
        expect(readConversation(writeConversation({ history, usage }, 'admin', same))).toEqual({
          history,
          usage,
        });
      }),
    );
  });

  it('can always be read back, however long the answers were', () => {
    const history = [{ role: 'assistant' as const, content: 'é😀'.repeat(20_000) }];
    const read = readConversation(writeConversation({ history, usage: Usage.NONE }, 'readonly', same));
    const content = read?.history[0]?.content ?? '';
    expect(history[0]?.content.startsWith(content)).toBe(true);
    expect(Buffer.byteLength(content)).toBeGreaterThan(32_760);
  });

  it('holds no system text and no credential', () => {
    const history = [
      { role: 'system' as const, content: 'hidden' },
      { role: 'user' as const, content: 'my key is sk-1' },
    ];
    const written = writeConversation({ history, usage: Usage.NONE }, 'readonly', (text) =>
      text.replace('sk-1', '[key]'),
    );
    expect(written).not.toMatch(/hidden|sk-1/);
    expect(readConversation(written)?.history).toEqual([{ role: 'user', content: 'my key is [key]' }]);
  });

  it('counts for nothing where it says what may be done or what was used', () => {
    const claimed = readConversation(
      file({ permissions: 'admin', token_usage: { prompt_tokens: -5, cost_usd: 'free' } }),
    );
    expect(claimed).toEqual({ history: [], usage: Usage.NONE });
  });

  it('is no conversation when it is no JSON', () => {
    for (const text of ['', '{', 'hello']) expect(readConversation(text)).toBeNull();
  });

  it.each([
    ['[]', 'JSON object'],
    [file({ version: 2 }), 'version'],
    [file({ conversation_history: {} }), 'must be a list'],
    [
      file({ conversation_history: Array.from({ length: 1_001 }, () => ({ role: 'user', content: '' })) }),
      'more than 1000',
    ],
    [message({ role: 'system' }), 'conversation_history.0: role'],
    [message({ role: 'tool' }), 'role'],
    [message({ content: 4 }), 'content must be'],
    [message({ content: 'é'.repeat(16_385) }), '32768 bytes'],
    [`${'['.repeat(33)}${']'.repeat(33)}`, 'nested'],
    ['{"a":'.repeat(100_000), 'nested'],
  ])('is refused with the place that is wrong: %.60s', (text, place) => {
    expect(() => readConversation(text)).toThrow(place);
  });

  it('takes null for an empty message, and brackets inside texts for text', () => {
    expect(readConversation(message({ content: null }))?.history).toEqual([{ role: 'user', content: '' }]);
    const content = `${'['.repeat(50)}"\\`;
    expect(readConversation(message({ content }))?.history[0]?.content).toBe(content);
  });
});
