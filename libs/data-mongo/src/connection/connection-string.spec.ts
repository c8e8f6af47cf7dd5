import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConnectionStringError, createClient } from './connection-string.js';

function refusalOf(uri: string): string {
  try {
    createClient(uri, {});
  } catch (error) {
    if (error instanceof ConnectionStringError) return error.message;
    throw error;
  }
  return 'accepted';
}

describe('a connection string that the driver refuses', () => {
  it.each([
    'mongodb://ann:p@ss:w/rd@db.example/x',
    'mongodb://ann:p@ss@db.example/x',
    'mongodb://ann:p:ss@db.example/x',
    'mongodb://ann:50%@db.example/x',
    'mongodb://ann:a/b@db.example/x',
    'mongodb://ann:a?b@db.example/x',
    'mongodb+srv://ann:a#b@db.example/x',
  ])('needs percent encoding: %s', (uri) => {
    expect(refusalOf(uri)).toContain('percent-encode the user and the password (% as %25, @ as %40');
  });

  it.each([
    ['mongodb://db.example/x?foo=bar', 'the option foo is not one of the driver'],
    ['mongodb://db.example/x?tls=true&retryWritess=1', 'the option retryWritess is not one of the driver'],
    ['mongodb://db.example/x?maxPoolSize=abc', 'the option maxPoolSize has a value that it cannot have'],
    ['mongodb://db.example/x?tls=maybe', 'the option tls has a value that it cannot have'],
    ['mongodb://db.example/x?readPreference=nope', 'the option readPreference has a value'],
    ['mongodb://db.example/x?authMechanism=FOO', 'the option authMechanism has a value'],
    ['mongodb://db.example/x?replicaSet=a&replicaSet=b', 'its options do not fit together'],
    ['mongodb://db.example:99999/x', 'expected mongodb://USER:PASSWORD@HOST:PORT/NAME'],
    ['mongodb:///x', 'expected mongodb://USER:PASSWORD@HOST:PORT/NAME'],
  ])('%s: %s', (uri, part) => {
    expect(refusalOf(uri)).toContain(part);
  });

  it('is never repeated, and its refusal is one line', () => {
    const secret = fc.stringMatching(/^[@:/?#%&=[\]a-z ]{1,12}$/).map((text) => `q7${text}q7`);
    fc.assert(
      fc.property(
        secret,
        secret,
        fc.constantFrom('tls', 'foo', 'w', 'authSource'),
        (user, password, option) => {
          const message = refusalOf(
            `mongodb://${user}:${password}@db.example/x?${option}=${encodeURIComponent(password)}`,
          );
          expect(message).not.toContain('q7');
          expect(message).not.toContain('\n');
        },
      ),
    );
  });
});
