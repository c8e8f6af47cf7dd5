import fc from 'fast-check';
import { expect, it } from 'vitest';
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
