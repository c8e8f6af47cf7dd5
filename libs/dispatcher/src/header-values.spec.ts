import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeHeaderValue } from './methods/call-tool.js';

const encoded = (text: string) => `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;

it('reads back any text that was encoded', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(decodeHeaderValue(encoded(text))).toBe(text);
    }),
  );
});

it('takes plain text as it is, without the white space around it', () => {
  expect(decodeHeaderValue(' query_class\t')).toBe('query_class');
  expect(decodeHeaderValue('=?base64?not closed')).toBe('=?base64?not closed');
});

it.each([
  ['=?base64?ZWNobw?=', 'missing padding'],
  ['=?base64?ZWNobw=?=', 'too little padding'],
  ['=?base64?ZWNo bw==?=', 'a blank'],
  ['=?base64?ZWNo-w==?=', 'the URL alphabet'],
  ['=?base64?/w==?=', 'bytes that are no UTF-8'],
  ['caf\u00e9', 'characters that a header does not carry'],
])('refuses %j: %s', (value) => {
  expect(decodeHeaderValue(value)).toBeUndefined();
});
