import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition } from '#core';
import { callRecord } from './call-record.js';

const agent = new Agent({ definition: compileAgentDefinition('analyst'), principal: 'p' });
const classOf = (args: unknown) =>
  callRecord({
    tool: 'query_class',
    args,
    digest: null,
    agent,
    policyVersion: 'v',
    prices: { input: null, embedding: null },
    resultBytes: 1,
    milliseconds: 1,
    errorClass: 'Refused',
  }).class_name;

describe('the class in the record of a call', () => {
  it('is the stored name of the one that the call named', () => {
    expect(classOf({ class_name: 'Post' })).toBe('Post');
    expect(classOf({ class_name: 'User' })).toBe('_User');
    expect(classOf({ class_name: 'NoSuchClass' })).toBe('NoSuchClass');
  });

  it.each([
    ['no arguments', undefined],
    ['no object', 'Post'],
    ['no class', { limit: 1 }],
    ['an address', { class_name: 'ada@example.com' }],
    ['a token', { class_name: 'r:0123456789' }],
    ['a line', { class_name: 'Post\nPost' }],
    ['a list', { class_name: ['Post'] }],
    ['an object', { class_name: { name: 'Post' } }],
    ['a long name', { class_name: 'P'.repeat(129) }],
  ])('is absent for %s', (_, args) => {
    expect(classOf(args)).toBeUndefined();
  });

  it('is never longer than a name, and never anything but one, whatever was sent', () => {
    const name = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.jsonValue());
    fc.assert(
      fc.property(name, (class_name) => {
        const recorded = classOf({ class_name });
        expect(recorded === undefined || /^[A-Za-z_]\w{0,128}$/.test(recorded)).toBe(true);
      }),
    );
  });
});
