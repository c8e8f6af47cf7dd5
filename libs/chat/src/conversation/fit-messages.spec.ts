import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelMessage } from '../model/language-model.js';
import { DROPPED_RESULT, fitMessages, messageSize } from './fit-messages.js';

const text = fc.string({ maxLength: 400 });
const said = fc.array(fc.tuple(text, text), { maxLength: 6 }).map((pairs) =>
  pairs.flatMap(([user, assistant]): ModelMessage[] => [
    { role: 'user', text: user },
    { role: 'assistant', text: assistant, calls: [] },
  ]),
);
const exchange = fc.array(text, { minLength: 1, maxLength: 3 }).map((results): ModelMessage[] => {
  const ids = results.map((_, index) => `call_${index}`);
  return [
    { role: 'assistant', text: '', calls: ids.map((id) => ({ id, name: 'count', args: {} })) },
    {
      role: 'tool',
      results: results.map((content, index) => ({ id: ids[index] as string, content, failed: false })),
    },
  ];
});
const conversation = fc
  .tuple(said, text, fc.array(exchange, { maxLength: 5 }))
  .map(([before, question, exchanges]) => ({
    earlier: before.length,
    messages: [...before, { role: 'user' as const, text: question }, ...exchanges.flat()],
  }));

const sumSizes = (messages: readonly ModelMessage[]) =>
  messages.reduce((sum, message) => sum + messageSize(message), 0);
const results = (message: ModelMessage | undefined) => (message?.role === 'tool' ? message.results : []);

describe('messages made to fit', () => {
  it('never part a call from its result, never exceed the room, and always keep the question and the newest results', () => {
    fc.assert(
      fc.property(conversation, fc.nat(1_500), ({ earlier, messages }, budget) => {
        const fitting = fitMessages(messages, earlier, budget);
        if (!fitting) return;
        expect(sumSizes(fitting)).toBeLessThanOrEqual(budget);
        const dropped = messages.length - fitting.length;
        expect(dropped).toBeLessThanOrEqual(earlier);
        expect(fitting[earlier - dropped]).toEqual(messages[earlier]);
        expect(results(fitting.at(-1))).toEqual(results(messages.at(-1)));
        for (const [index, message] of fitting.entries()) {
          if (message.role !== 'assistant' || message.calls.length === 0) continue;
          expect(results(fitting[index + 1]).map(({ id }) => id)).toEqual(message.calls.map(({ id }) => id));
        }
      }),
    );
  });

  it('are left as they are where there is room', () => {
    fc.assert(
      fc.property(conversation, ({ earlier, messages }) => {
        expect(fitMessages(messages, earlier, sumSizes(messages))).toEqual(messages);
      }),
    );
  });

  it('lose old results before old questions, and nothing at all when that is not enough', () => {
    const big = 'x'.repeat(4_000);
    const messages: ModelMessage[] = [
      { role: 'user', text: 'earlier' },
      { role: 'assistant', text: 'indeed', calls: [] },
      { role: 'user', text: 'now' },
      ...['a', 'b'].flatMap((id): ModelMessage[] => [
        { role: 'assistant', text: '', calls: [{ id, name: 'count', args: {} }] },
        { role: 'tool', results: [{ id, content: big, failed: false }] },
      ]),
    ];
    const fitting = fitMessages(messages, 2, 1_200);
    expect(fitting).toHaveLength(7);
    expect([results(fitting?.[4])[0]?.content, results(fitting?.[6])[0]?.content]).toEqual([
      DROPPED_RESULT,
      big,
    ]);
    expect(fitMessages(messages, 2, 1_060)).toHaveLength(5 + 1 - 1);
    expect(fitMessages(messages, 2, 500)).toBeNull();
  });

  it('begin with a question, whatever was left out', () => {
    fc.assert(
      fc.property(conversation, fc.nat(2_000), ({ earlier, messages }, budget) => {
        expect(fitMessages(messages, earlier, budget)?.[0]?.role ?? 'user').toBe('user');
      }),
    );
    const imported: ModelMessage[] = [
      { role: 'assistant', text: 'Of course you may.', calls: [] },
      { role: 'user', text: 'now' },
    ];
    expect(fitMessages(imported, 1, 10_000)).toEqual([imported[1]]);
  });
});
