import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReceivedBody } from './http-exchange.js';

it('holds what arrived, in whatever chunks it came, and nothing of the chunks once there are several', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 }), (arrived) => {
      const received = new ReceivedBody();
      const chunks = arrived.map((bytes) => Buffer.from(bytes));
      for (const chunk of chunks) received.add(chunk);
      const sent = Buffer.concat(chunks);
      expect(received.toBuffer()).toEqual(sent);
      expect(received.size).toBe(sent.length);
      if (chunks.filter(({ length }) => length > 0).length < 2) return;
      for (const chunk of chunks) chunk.fill(0);
      expect(received.toBuffer()).toEqual(Buffer.concat(arrived));
    }),
  );
});

describe('the memory of a body', () => {
  const KIB = 1024;
  const receive = (count: number, most?: number) => {
    const received = new ReceivedBody(most);
    let counted = 0;
    for (let index = 0; index < count; index += 1) {
      const chunk = Buffer.alloc(KIB, index);
      counted += received.measureGrowth(chunk);
      received.add(chunk);
    }
    return { counted, held: received.toBuffer().buffer.byteLength };
  };

  it.each([9, 100, 513])('is counted as what is held of %i chunks, not as what arrived', (count) => {
    const { counted, held } = receive(count);
    expect(counted).toBe(held);
    expect(held).toBeLessThanOrEqual(2 * count * KIB);
  });

  it('is no more than the body where its length is known', () => {
    expect(receive(513, 513 * KIB)).toEqual({ counted: 513 * KIB, held: 513 * KIB });
  });
});
