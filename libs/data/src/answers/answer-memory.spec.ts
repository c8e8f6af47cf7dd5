import { describe, expect, it } from 'vitest';
import { LazyAbort } from '#core';
import type { StoreError } from '../record-store.js';
import { answerLeft, AnswerMemory, PlacedRows } from './answer-memory.js';

const MB = 1024 * 1024;
const memory = () => new AnswerMemory({ maxBytesInFlight: 12 * MB, maxAnswerBytes: 8 * MB });
const ask = (principal: string, expected: number, more: object = {}) => ({
  principal,
  expected,
  maxTimeMS: 1000,
  operation: new LazyAbort(),
  ...more,
});
const codeOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'begun',
    (error: StoreError) => error.code,
  );

describe('the memory for answers', () => {
  it('lets one principal take no more than is left for the others', async () => {
    const shared = memory();
    await shared.begin(ask('a', 3 * MB));
    await shared.begin(ask('a', 3 * MB));
    expect(await codeOf(shared.begin(ask('a', 3 * MB, { maxTimeMS: 10 })))).toBe('busy');
    expect(await codeOf(shared.begin(ask('b', 3 * MB)))).toBe('begun');
    expect(await codeOf(shared.begin(ask('b', 3 * MB, { maxTimeMS: 10 })))).toBe('busy');
  });

  it('begins the first read of a principal also when others hold everything', async () => {
    const shared = memory();
    for (const principal of ['a', 'b', 'c', 'd']) await shared.begin(ask(principal, 4 * MB));
    expect(await codeOf(shared.begin(ask('e', 4 * MB)))).toBe('begun');
    expect(await codeOf(shared.begin(ask('a', 1, { maxTimeMS: 10 })))).toBe('busy');
  });

  it('lets who waits begin when there is room again, and gives everything back', async () => {
    const shared = memory();
    const held = await Promise.all([shared.begin(ask('a', 4 * MB)), shared.begin(ask('a', 2 * MB))]);
    const waiting = shared.begin(ask('a', 4 * MB));
    for (const answer of held) answer.end();
    const late = await waiting;
    late.end();
    late.end();
    expect(shared.bytesInFlight).toBe(0);
  });

  it('ends the wait of a call that ends', async () => {
    const shared = memory();
    const first = await shared.begin(ask('a', 8 * MB));
    const call = new LazyAbort();
    const waiting = codeOf(shared.begin(ask('a', 8 * MB, { operation: call })));
    call.abort('cancelled');
    expect(await waiting).toBe('cancelled');
    first.end();
    expect(shared.bytesInFlight).toBe(0);
  });

  it('refuses an answer over the limit, and counts what came beyond what was expected', async () => {
    const shared = memory();
    const answer = await shared.begin(ask('a', 1 * MB));
    answer.noteArrival(3 * MB, () => 6 * MB, Infinity);
    expect(shared.bytesInFlight).toBe(6 * MB);
    expect(() => answer.noteArrival(1 * MB, () => 3 * MB, Infinity)).toThrow('too_large');
    const small = await shared.begin(ask('b', 0));
    expect(() => small.noteArrival(2000, () => 0, 1000)).toThrow('too_large');
  });

  it('makes objects of large answers one at a time, principals in turn', async () => {
    const shared = memory();
    const order: string[] = [];
    const large = async (name: string) => {
      const answer = await shared.begin(ask(name, 0));
      answer.noteArrival(1 * MB, () => 1 * MB, Infinity);
      await answer.become(async () => {
        order.push(`${name} begins`);
        await new Promise((resolve) => setImmediate(resolve));
        order.push(`${name} ends`);
      });
      answer.end();
    };
    await Promise.all([large('a'), large('a'), large('b')]);
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'a begins', 'a ends']);
  });
});

describe('a row that several rows include', () => {
  it('counts wherever it stands', () => {
    const rows = new PlacedRows(answerLeft(10_000));
    rows.add('x', { objectId: 'x', text: 'y'.repeat(4000) });
    expect(rows.place('none')).toBeUndefined();
    rows.place('x');
    rows.place('x');
    rows.place('x');
    expect(() => rows.place('x')).toThrow('too_large');
  });
});
