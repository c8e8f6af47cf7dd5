import { describe, expect, it } from 'vitest';
import { decodeDocument } from './decode.js';
import { encodeDocument } from './encode.js';
import { encodeReply, parseRequest, WireError } from './message.js';

const body = encodeDocument({ insert: 'c', $db: 'd' });

function opMsg(flags: number, sections: Buffer[], opCode = 2013): Buffer {
  const checksum = flags & 1 ? Buffer.alloc(4) : Buffer.alloc(0);
  const head = Buffer.alloc(20);
  const rest = Buffer.concat([...sections, checksum]);
  head.writeInt32LE(20 + rest.length, 0);
  head.writeInt32LE(77, 4);
  head.writeInt32LE(opCode, 12);
  head.writeUInt32LE(flags, 16);
  return Buffer.concat([head, rest]);
}

const kind0 = (document: Buffer): Buffer => Buffer.concat([Buffer.from([0]), document]);

function kind1(name: string, documents: Buffer[]): Buffer {
  const content = Buffer.concat([Buffer.alloc(4), Buffer.from(`${name}\0`), ...documents]);
  content.writeInt32LE(content.length, 0);
  return Buffer.concat([Buffer.from([1]), content]);
}

describe('parseRequest', () => {
  it('joins document sequences to the body and keeps their bytes', () => {
    const documents = [encodeDocument({ x: 1 }), encodeDocument({ x: 2 })];
    const request = parseRequest(opMsg(0, [kind1('documents', documents), kind0(body)]));
    expect(request.body).toMatchObject({ insert: 'c', $db: 'd' });
    expect(request.rawDocuments('documents')?.map((one) => decodeDocument(one))).toEqual([
      { x: 1 },
      { x: 2 },
    ]);
    const updates = parseRequest(opMsg(0, [kind0(body), kind1('updates', documents)]));
    expect(updates.body['updates']).toEqual([{ x: 1 }, { x: 2 }]);
  });

  it('reads past a checksum and knows when no answer is wanted', () => {
    expect(parseRequest(opMsg(1, [kind0(body)]))).toMatchObject({ wantsReply: true, requestId: 77 });
    expect(parseRequest(opMsg(2, [kind0(body)])).wantsReply).toBe(false);
  });

  it.each([
    ['an unknown required flag', opMsg(4, [kind0(body)])],
    ['no body', opMsg(0, [kind1('documents', [])])],
    ['two bodies', opMsg(0, [kind0(body), kind0(body)])],
    ['an unknown section', opMsg(0, [Buffer.concat([Buffer.from([9]), body])])],
    ['a field given twice', opMsg(0, [kind0(body), kind1('insert', [])])],
    ['another opcode', opMsg(0, [kind0(body)], 2012)],
    ['a length outside the message', opMsg(0, [kind0(Buffer.from([200, 0, 0, 0, 0]))])],
  ])('refuses %s', (_title, message) => {
    expect(() => parseRequest(message)).toThrow(WireError);
  });

  it('answers the OP_QUERY handshake by OP_REPLY and everything else by OP_MSG', () => {
    const query = Buffer.concat([Buffer.alloc(20), Buffer.from('admin.$cmd\0'), Buffer.alloc(8), body]);
    query.writeInt32LE(query.length, 0);
    query.writeInt32LE(2004, 12);
    const legacy = parseRequest(query);
    expect(legacy).toMatchObject({ legacy: true, body: { $db: 'admin' } });
    expect(encodeReply(legacy, { ok: 1 }).readInt32LE(12)).toBe(1);
    const reply = encodeReply({ legacy: false, requestId: 77 }, { ok: 1 });
    expect(reply.readInt32LE(12)).toBe(2013);
    expect(reply.readInt32LE(8)).toBe(77);
    expect(decodeDocument(reply.subarray(21))).toEqual({ ok: 1 });
  });
});
