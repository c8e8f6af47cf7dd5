import { describe, expect, it } from 'vitest';
import { describeError, listFrames } from './described-error.js';

const VALUE = 'ada@example.org';

function quoting(name: string, message: string, more: object = {}): Error {
  return Object.assign(new Error(message), { name, ...more });
}

describe('the text of an error in a log', () => {
  it.each([
    quoting(
      'MongoServerError',
      `E11000 duplicate key error collection: a.B index: email_1 dup key: { email: "${VALUE}" }`,
      {
        code: 11000,
        keyPattern: { email: 1 },
        keyValue: { email: VALUE },
      },
    ),
    quoting('MongoServerError', 'Document failed validation', { code: 121, errInfo: { details: VALUE } }),
    quoting('MongoServerError', `Can't extract geo keys: { _id: 1, email: "${VALUE}" }`, { code: 16755 }),
    quoting('MongoBulkWriteError', `E11000 duplicate key error dup key: { email: "${VALUE}" }`, {
      code: 11000,
    }),
    quoting('CastError', `Cast to ObjectId failed for value "${VALUE}" (type string) at path "owner"`, {
      value: VALUE,
      path: 'owner',
    }),
    quoting('ValidationError', `User validation failed: email: "${VALUE}" is taken`),
    quoting('BSONError', `key ${VALUE} must not start with '$'`),
    quoting(
      'MongoServerError',
      `not authorized to execute command { find: "B", filter: { email: "${VALUE}" } }`,
      {
        code: 13,
        codeName: `Unauthorized ${VALUE}`,
      },
    ),
  ])('holds no value that $name quotes ($message)', (error) => {
    expect(describeError(error)).not.toContain(VALUE);
  });

  it('names the code, the columns of the index and the path', () => {
    const taken = quoting('MongoServerError', VALUE, {
      code: 11000,
      codeName: 'DuplicateKey',
      keyPattern: { email: 1, orgId: 1 },
    });
    expect(describeError(taken)).toBe('an error without its values 11000 DuplicateKey (email, orgId)');
    expect(describeError(quoting('CastError', VALUE, { path: 'owner' }))).toBe(
      'an error without its values owner',
    );
  });

  it('is kept of an error that quotes none', () => {
    expect(describeError(new TypeError('x is not a function'))).toBe('x is not a function');
    expect(describeError(quoting('MongoServerSelectionError', 'connect ECONNREFUSED'))).toBe(
      'connect ECONNREFUSED',
    );
  });
});

describe('the frames of an error', () => {
  it('are where it was thrown, without its text, however many lines that has', () => {
    for (const text of ['secret\n    of two lines', 'a\n    at secret (secret.js:1:1)', '']) {
      const frames = listFrames(new TypeError(text));
      expect(frames).toMatch(/^(\n {4}at .+)+$/);
      expect(frames).not.toContain('secret');
    }
    expect(listFrames('no error')).toBe('');
  });
});
