import fc from 'fast-check';
import { BSON, MongoNetworkError, MongoServerError } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { StoreError, type StoreErrorCode } from '#data';
import { asStoreOperation, toStoreError, UnstorableValue } from './errors.js';

const server = (code: number, errmsg = 'secret text of the driver') =>
  new MongoServerError({ ok: 0, code, errmsg, message: errmsg });

const cases: [string, unknown, StoreErrorCode][] = [
  ['a passed deadline', server(50), 'timeout'],
  ['a duplicate key', server(11000), 'duplicate'],
  ['an interrupted operation', server(11601), 'cancelled'],
  ['a missing search service', server(31082), 'unsupported'],
  ['a search that was not set up', server(6047401), 'unsupported'],
  ['an unknown command', server(59), 'unsupported'],
  ['a stage this server lacks', server(40324), 'unsupported'],
  ['a bad value', server(2), 'invalid_query'],
  ['a query that does not parse', server(9), 'invalid_query'],
  ['operands of the wrong type', server(14), 'invalid_query'],
  ['a computed date that overflows', server(15), 'invalid_query'],
  ['a duration that overflows', server(159), 'invalid_query'],
  ['an expression that does not parse', server(16020), 'invalid_query'],
  ['an expression operator that there is not', server(168), 'invalid_query'],
  ['a time zone that is none', server(40485), 'unknown_time_zone'],
  ['a bad regular expression', server(51091), 'invalid_query'],
  ['a server that steps down', server(189), 'unavailable'],
  ['a server without a primary', server(10107), 'unavailable'],
  ['a document that its validator refuses', server(121), 'rejected'],
  ['a refused login', server(18), 'failed'],
  ['a missing right', server(13), 'failed'],
  ['a broken connection', new MongoNetworkError('connection 7 to 10.0.0.1:27017 closed'), 'unavailable'],
  [
    'a client that was closed',
    Object.assign(new Error('x'), { name: 'MongoClientClosedError' }),
    'unavailable',
  ],
  ['an aborted signal', new DOMException('stop', 'AbortError'), 'cancelled'],
  ['a value that cannot be stored', new UnstorableValue('title', 'no'), 'invalid_query'],
  [
    'a name that no document can have',
    new BSON.BSONError('key a\u0000b must not contain null bytes'),
    'invalid_query',
  ],
  ['a document that cannot be read', new BSON.BSONError('Invalid UTF-8 string in BSON document'), 'failed'],
  ['anything else', new RangeError('surprise'), 'failed'],
];

describe('errors of the driver', () => {
  it.each(cases)('%s keeps its text to the cause alone', (_title, fault, code) => {
    const error = toStoreError(fault);
    expect(error).toBeInstanceOf(StoreError);
    expect(error.code).toBe(code);
    expect(error.message).toBe(code);
    expect(error.cause).toBe(fault);
  });

  it('say that a class has no text index', () => {
    expect(toStoreError(server(27))).toMatchObject({
      code: 'invalid_query',
      advice: expect.stringContaining("'$text' needs a text index") as unknown,
    });
  });

  it.each([
    [241, 'a text', /\$convert/],
    [17124, 'a text', /\$ifNull/],
    [16702, 'a text', /\$toString/],
    [31253, 'a text', /_id/],
    [31254, 'a text', /_id/],
    [2, "PlanExecutor error :: caused by :: can't $divide by zero", /\$cond/],
    [14, '$add only supports numeric or date types, not string', /\$convert/],
    [14, "can't $subtract string from decimal", /\$convert/],
  ])('%d says what to write instead, and nothing of what the server said', (code, message, instead) => {
    const error = toStoreError(Object.assign(server(code), { message }));
    expect(error.code).toBe('invalid_query');
    expect(error.advice).toMatch(instead);
    expect(error.advice).not.toContain('string');
  });

  it('are a cancellation under an aborted signal', () => {
    expect(toStoreError(server(2), { signal: AbortSignal.abort() }).code).toBe('cancelled');
  });

  it('passes its own errors on', () => {
    const own = new StoreError('duplicate');
    expect(toStoreError(own)).toBe(own);
  });

  it('never show more than a code, whatever was thrown', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything(), async (thrown) => {
        const fault: unknown = await asStoreOperation(undefined, () => Promise.reject(thrown)).catch(
          (error: unknown) => error,
        );
        expect(fault).toBeInstanceOf(StoreError);
        expect((fault as StoreError).message).toBe((fault as StoreError).code);
      }),
    );
  });

  it('does not start under an aborted signal', async () => {
    let started = false;
    const work = asStoreOperation({ signal: AbortSignal.abort() }, async () => {
      started = true;
    });
    await expect(work).rejects.toThrow(new StoreError('cancelled'));
    expect(started).toBe(false);
  });
});
