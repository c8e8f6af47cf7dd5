import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTraceParent, writeTraceParent } from './tracing/tracing.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

const hex = (length: number) =>
  fc
    .array(fc.constantFrom(...'0123456789abcdef'.split('')), { minLength: length, maxLength: length })
    .map((digits) => digits.join(''))
    .filter((text) => !/^0+$/.test(text));

describe('trace context', () => {
  it('is read as W3C prescribes it', () => {
    const read = readTraceParent(`00-${TRACE}-${SPAN}-01`, 'rojo=00f067aa0ba902b7, congo=t61rcWkgMzE');
    expect(read).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      sampled: true,
      state: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
    });
  });

  it.each([
    ['no text', 7],
    ['a list of headers', [`00-${TRACE}-${SPAN}-01`]],
    ['an empty text', ''],
    ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a version that is forbidden', `ff-${TRACE}-${SPAN}-01`],
    ['more than version 00 has', `00-${TRACE}-${SPAN}-01-more`],
    ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a line break', `00-${TRACE}-${SPAN}-01\n`],
    ['more than any version needs', `01-${TRACE}-${SPAN}-01-${'x'.repeat(200)}`],
  ])('is none when it is %s', (_, value) => {
    expect(readTraceParent(value)).toBeUndefined();
  });

  it('of a later version is read as far as it is known', () => {
    expect(readTraceParent(`01-${TRACE}-${SPAN}-00-more`)).toMatchObject({ traceId: TRACE, sampled: false });
  });

  it.each([
    ['too long', `a=${'x'.repeat(600)}`],
    ['too many entries', Array.from({ length: 33 }, (_, at) => `k${at}=v`).join(',')],
    ['the same key twice', 'a=1,a=2'],
    ['a line break', 'a=1\nb=2'],
    ['no entry', 'abc'],
    ['a list', ['a=1']],
  ])('keeps no tracestate that has %s', (_, state) => {
    expect(readTraceParent(`00-${TRACE}-${SPAN}-01`, state)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      sampled: true,
    });
  });

  it('comes back as it was written', () => {
    fc.assert(
      fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, sampled) => {
        expect(readTraceParent(writeTraceParent({ traceId, spanId, sampled }))).toEqual({
          traceId,
          spanId,
          sampled,
        });
      }),
    );
  });

  it('never holds anything but digits and printable text, whatever was sent', () => {
    const sent = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.anything(),
      fc.constant(`00-${TRACE}-${SPAN}-01`),
    );
    fc.assert(
      fc.property(sent, sent, (parent, state) => {
        const read = readTraceParent(parent, state);
        if (!read) return;
        expect(read.traceId).toMatch(/^[0-9a-f]{32}$/);
        expect(read.spanId).toMatch(/^[0-9a-f]{16}$/);
        expect(read.state ?? '').toMatch(/^[\x20-\x7e]{0,512}$/);
      }),
    );
  });
});
