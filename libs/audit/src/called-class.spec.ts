import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition } from '#core';
import { callRecord } from './call-record.js';

const agent = new Agent({ definition: compileAgentDefinition('analyst'), principal: 'p' });
const createRecord = (args: unknown, joined?: ReadonlySet<string>) =>
  callRecord({
    tool: 'query_class',
    args,
    joined,
    digest: null,
    agent,
    policyVersion: 'v',
    prices: { input: null, embedding: null },
    resultBytes: 1,
    milliseconds: 1,
    errorClass: 'Refused',
  });
const readClass = (args: unknown) => createRecord(args).class_name;

describe('the class in the record of a call', () => {
  it('is the stored name of the one that the call named', () => {
    expect(readClass({ class_name: 'Post' })).toBe('Post');
    expect(readClass({ class_name: 'User' })).toBe('_User');
    expect(readClass({ class_name: 'NoSuchClass' })).toBe('NoSuchClass');
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
    expect(readClass(args)).toBeUndefined();
  });

  it('is never longer than a name, and never anything but one, whatever was sent', () => {
    const name = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.jsonValue());
    fc.assert(
      fc.property(name, (class_name) => {
        const recorded = readClass({ class_name });
        expect(recorded === undefined || /^[A-Za-z_]\w{0,128}$/.test(recorded)).toBe(true);
      }),
    );
  });
});

describe('the joined classes in the record of a call', () => {
  const readJoined = (...names: string[]) =>
    createRecord({ class_name: 'Post' }, new Set(names)).joined_classes;

  it('are others than the called one, sorted, and absent where there are none', () => {
    expect(readJoined('_User', 'Post', 'Author')).toEqual(['Author', '_User']);
    for (const none of [
      readJoined(),
      readJoined('Post'),
      createRecord({ class_name: 'Post' }).joined_classes,
    ])
      expect(none).toBeUndefined();
  });

  it('say that they are more than a record names', () => {
    const names = Array.from({ length: 70 }, (_, at) => `C${String(at).padStart(2, '0')}`);
    expect(readJoined(...names)).toEqual([...names.slice(0, 64), '…']);
    expect(readJoined(...names.slice(0, 64))).toHaveLength(64);
  });
});
