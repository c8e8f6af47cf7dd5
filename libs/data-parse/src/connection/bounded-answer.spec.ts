import { describe, expect, it } from 'vitest';
import { MIN_VALUE_BYTES } from '#data';
import { JsonWeight } from './bounded-answer.js';

const weigh = (text: string, chunk = text.length): number => {
  const weight = new JsonWeight();
  const bytes = Buffer.from(text);
  let sum = 0;
  for (let at = 0; at < bytes.length; at += chunk) sum += weight.add(bytes.subarray(at, at + chunk));
  return sum;
};

describe('the weight of JSON', () => {
  it('grows with every value, whatever a value is written as', () => {
    const text = `[${Array.from({ length: 100 }, () => '{}').join(',')}]`;
    expect(weigh(text)).toBeGreaterThanOrEqual(100 * MIN_VALUE_BYTES);
    expect(weigh('[0,0,0]')).toBe(7 + 3 * MIN_VALUE_BYTES);
  });

  it('does not take the inside of a text for values', () => {
    const text = JSON.stringify({ a: 'x,[{,"\\\\",[[{{,,' });
    expect(weigh(text)).toBe(text.length + MIN_VALUE_BYTES);
  });

  it('is the same however the text is cut', () => {
    const text = JSON.stringify([{ a: 'b\\"c,d', e: [1, 2, { f: null }] }, '\\', ',']);
    for (const chunk of [1, 2, 3, 7]) expect(weigh(text, chunk)).toBe(weigh(text));
  });
});
