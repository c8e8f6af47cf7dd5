import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inexactIn } from '#core';
import { errorReply, ExactId, parseBody, readMessage, resultReply } from './message.js';

const LARGE = '9007199254740993';
const messageIn = (text: string) => {
  const reading = parseBody(Buffer.from(text));
  return reading.ok ? readMessage(reading.value) : null;
};

describe('the body of a request', () => {
  it('never throws, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(typeof parseBody(Buffer.from(bytes)).ok).toBe('boolean');
      }),
    );
  });

  it('is an empty object when it is empty', () => {
    expect(parseBody(Buffer.alloc(0))).toEqual({ ok: true, value: {} });
  });

  it('is refused when its bytes are no UTF-8, which could be read in two ways', () => {
    expect(parseBody(Buffer.from([0x22, 0xc0, 0xaf, 0x22]))).toEqual({ ok: false, fault: 'syntax' });
  });

  it('is refused when it is nested deeper than 20 levels', () => {
    expect(parseBody(Buffer.from('['.repeat(20) + ']'.repeat(20))).ok).toBe(true);
    expect(parseBody(Buffer.from('['.repeat(21) + ']'.repeat(21)))).toEqual({ ok: false, fault: 'depth' });
  });
});

describe('an id of more digits than a double holds', () => {
  it('is answered with all of them', () => {
    const { id } = messageIn(`{"id":${LARGE},"method":"ping"}`) ?? {};
    expect(resultReply(id, { result: {} }).body).toBe(`{"jsonrpc":"2.0","id":${LARGE},"result":{}}`);
    expect(errorReply(400, { code: -1, message: 'no' }, id).body).toContain(`"id":${LARGE},"error"`);
  });

  it('names one call to cancel, which is not that of its neighbour or of its text', () => {
    const key = (text: string) =>
      JSON.stringify(
        (messageIn(`{"method":"notifications/cancelled","params":{"requestId":${text}}}`)
          ?.params as object) ?? null,
      );
    const keys = [LARGE, '9007199254740992', `"${LARGE}"`].map(key);
    expect(new Set(keys).size).toBe(3);
    expect(JSON.stringify(new ExactId(LARGE))).toBe(
      JSON.stringify(messageIn(`{"id":${LARGE},"method":"x"}`)?.id),
    );
  });
});

describe('an object in the place of an id', () => {
  it('is no id, whichever numbers it holds', () => {
    expect(messageIn(`{"id":{"a":${LARGE}},"method":"ping"}`)).toBeNull();
    expect(messageIn(`{"id":[${LARGE}],"method":"ping"}`)).toBeNull();
  });
});

describe('a number that a double does not hold', () => {
  it('marks the arguments of a call, and nothing else of it', () => {
    const { params } = messageIn(
      `{"id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[${LARGE}]}}}`,
    ) as { params: { arguments: object } };
    expect(inexactIn(params)).toBeUndefined();
    expect(inexactIn(params.arguments)).toContain('arguments.a[0] is 9007199254740993');
  });

  it('marks the params of every other method', () => {
    for (const method of ['prompts/get', 'completion/complete', 'resources/read']) {
      const message = messageIn(`{"id":1,"method":"${method}","params":{"arguments":{"a":${LARGE}}}}`);
      expect(inexactIn(message?.params)).toContain('arguments.a is 9007199254740993');
    }
  });

  it('marks the params of a message that has it beside them, or as all of them', () => {
    for (const members of [
      '"jsonrpc":LARGE',
      '"jsonrpc":LARGE,"params":{}',
      '"x":[LARGE]',
      '"params":[LARGE]',
    ])
      expect(
        inexactIn(messageIn(`{"id":1,"method":"ping",${members.replace('LARGE', LARGE)}}`)?.params),
      ).toContain('is 9007199254740993');
  });

  it('makes an error of a reply to a request to the client', () => {
    const reply = messageIn(`{"id":"q","result":{"action":"accept","content":{"age":${LARGE}}}}`);
    expect(reply).toMatchObject({ isResponse: true, id: 'q', result: undefined, error: { code: -32602 } });
    expect(JSON.stringify(reply?.error)).toContain('content.age is 9007199254740993');
  });
});
