import { describe, expect, it } from 'vitest';
import { sendableFields } from './parse-record-writer.js';

describe('the fields of a write', () => {
  it.each([
    '_method',
    '_SessionToken',
    '_MasterKey',
    '_ApplicationId',
    '__proto__x',
    'a.b',
    '$set',
    '',
    'objectId',
    'sessionToken',
    'password',
  ])('never carry %j, which Parse Server would read as more than a field', (name) => {
    expect(() => sendableFields('Note', { [name]: 'x' })).toThrow('invalid_query');
  });

  it.each<[string, unknown]>([
    ['an operation nobody knows', { __op: 'Batch', ops: [] }],
    ['an operation in a list', { __op: ['Delete'] }],
    ['an operation without a text', { __op: { toString: false } }],
    ['an operation inside a value', { a: { __op: 'Delete' } }],
    ['an operator inside a value', { a: [{ $set: 1 }] }],
    ['a path inside a value', { 'a.b': 1 }],
    ['an amount that is none', { __op: 'Increment', amount: '1' }],
  ])('never carry %s', (_title, value) => {
    expect(() => sendableFields('Note', { title: value })).toThrow('invalid_query');
  });

  it('take what is added twice for one', () => {
    expect(sendableFields('Note', { tags: { __op: 'AddUnique', objects: ['a', 'a'] } })).toEqual({
      tags: { __op: 'AddUnique', objects: ['a'] },
    });
  });
});
