import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Double } from 'bson';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Document } from '../bson/document.js';
import { EmbeddedMongo } from '../embedded-mongo.js';
import { decodeDocument } from '../wire/decode.js';
import { encodeDocument } from '../wire/encode.js';
import { Framer } from '../wire/message.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const MORE_TO_COME = 2;

function message(requestId: number, command: Document, flags = 0): Buffer {
  const body = encodeDocument({ ...command, $db: 'd' });
  const head = Buffer.alloc(21);
  head.writeInt32LE(21 + body.length, 0);
  head.writeInt32LE(requestId, 4);
  head.writeInt32LE(2013, 12);
  head.writeUInt32LE(flags, 16);
  return Buffer.concat([head, body]);
}

/** Reads whole replies until there are `count` of them. */
async function replies(socket: Socket, count: number): Promise<{ to: number; body: Document }[]> {
  const framer = new Framer();
  const seen: { to: number; body: Document }[] = [];
  while (seen.length < count) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    for (const one of framer.push(chunk))
      seen.push({ to: one.readInt32LE(8), body: decodeDocument(one.subarray(21)) });
  }
  return seen;
}

let server: EmbeddedMongo;
let socket: Socket;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  socket = connect(server.port, server.host);
  await once(socket, 'connect');
});
afterAll(async () => {
  socket.destroy();
  await server.close();
});

describe('a connection', () => {
  it('answers a flood of requests completely and in order', async () => {
    const ids = Array.from({ length: 700 }, (_, i) => i + 1);
    const commands = ids.map((id) =>
      message(id, id % 2 ? { insert: 'flood', documents: [{ _id: id }] } : { count: 'flood' }),
    );
    socket.write(Buffer.concat(commands));
    const answers = await replies(socket, ids.length);
    expect(answers.map(({ to }) => to)).toEqual(ids);
    // Each count sees the insert before it, and no later one.
    const counts = answers.flatMap(({ body }, i) => (i % 2 ? [body['n']] : []));
    expect(counts).toEqual(Array.from({ length: 350 }, (_, i) => i + 1));
  });

  it('does what nobody waits for without an answer', async () => {
    socket.write(message(1, { insert: 'silent', documents: [{ _id: 1 }] }, MORE_TO_COME));
    socket.write(message(2, { count: 'silent' }));
    expect(await replies(socket, 1)).toMatchObject([{ to: 2, body: { n: 1 } }]);
  });

  it('refuses a document that has two members of one name', async () => {
    const twice = message(6, { find: 'x', filter: { aa: 1, ab: 2 } });
    twice.write('aa', twice.indexOf('ab'));
    socket.write(twice);
    socket.write(message(7, { ping: 1 }));
    expect(await replies(socket, 2)).toMatchObject([
      { to: 6, body: { code: 238, ok: new Double(0) } },
      { to: 7, body: { ok: new Double(1) } },
    ]);
  });

  it('takes names of JavaScript for names like any other', async () => {
    socket.write(message(3, { explain: { constructor: 1 } }));
    socket.write(message(4, { toString: 1 }));
    socket.write(message(5, { find: 'constructor', filter: { constructor: 1 }, sort: { valueOf: 1 } }));
    const answers = await replies(socket, 3);
    expect(answers.map(({ body }) => body['code'] ?? body['ok'])).toEqual([59, 59, new Double(1)]);
  });
});
