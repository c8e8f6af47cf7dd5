import { describe, expect, it } from 'vitest';
import { Framer } from './message.js';
import { MAX_MESSAGE_BYTES } from './raw-bson.js';

import fc from 'fast-check';

function message(content: Buffer): Buffer {
  const head = Buffer.alloc(16);
  head.writeInt32LE(16 + content.length, 0);
  return Buffer.concat([head, content]);
}

describe('Framer', () => {
  it('gives the same messages however the stream is cut', () => {
    const contents = fc.array(fc.uint8Array({ maxLength: 60 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(contents, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (parts, sizes) => {
        const messages = parts.map((part) => message(Buffer.from(part)));
        const stream = Buffer.concat(messages);
        const framer = new Framer();
        const received: Buffer[] = [];
        for (let at = 0, turn = 0; at < stream.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          received.push(...framer.push(stream.subarray(at, at + size)));
          at += size;
        }
        expect(received.map(String)).toEqual(messages.map(String));
      }),
    );
  });

  it.each([0, 15, -1, MAX_MESSAGE_BYTES + 1])('refuses a message that claims %d bytes', (size) => {
    const head = Buffer.alloc(16);
    head.writeInt32LE(size, 0);
    expect(() => new Framer().push(head)).toThrow(RangeError);
  });
});
