import fc from 'fast-check';
import { h, type VNode } from 'preact';
import { describe, expect, it } from 'vitest';
import { makeSafe, cleanText } from './shown-text.js';

const DECEIVING = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

describe('shown text', () => {
  it('writes out what hides, turns around or fakes', () => {
    expect(cleanText('abc\u202egpj.exe\u0000\u200b\u2066x')).toBe('abc\\u202egpj.exe\\u0000\\u200b\\u2066x');
    expect(cleanText('a\u{e0041}\u034f\ufe01b')).toBe('a\\u{e0041}\\u034f\\ufe01b');
  });

  it('leaves what people write as it is', () => {
    const text = 'Größe 日本語 العربية 👍\n\tnext';
    expect(cleanText(text)).toBe(text);
  });

  it('never holds a control or a format character, whatever it is given', () => {
    const code = fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.integer({ min: 0xe0000, max: 0xe01ef }),
      fc.integer({ min: 0x10000, max: 0x10ffff }),
    );
    fc.assert(
      fc.property(fc.string({ unit: code.map((one) => String.fromCodePoint(one)) }), (text) => {
        const shown = cleanText(text).replaceAll(/[\n\t]/g, '');
        const format = Array.from(shown).filter((character) => DECEIVING.test(character));
        // Signs of numbers stand before digits, and joints of hieroglyphs between them, visibly.
        expect(
          format.filter(
            (character) =>
              !/[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{1343f}]/u.test(
                character,
              ),
          ),
        ).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('ends, however long it is', () => {
    expect(cleanText('x'.repeat(1_000_000)).length).toBeLessThan(2_100);
  });
});

describe('a node of the page', () => {
  const safe = (node: unknown) => {
    makeSafe(node as VNode);
    return (node as VNode).props as Record<string, unknown>;
  };

  it('has its text and what is read aloud escaped', () => {
    const text = { type: null, props: 'a\u202eb' } as unknown as VNode;
    makeSafe(text);
    expect(text.props).toBe('a\\u202eb');
    expect(safe(h('button', { 'aria-label': 'x\u200by', title: '\u2066' }))).toMatchObject({
      'aria-label': 'x\\u200by',
      title: '\\u2066',
    });
    // What is sent back to the service stays as it is.
    expect(safe(h('option', { value: 'x\u200by' }))).toMatchObject({ value: 'x\u200by' });
  });

  it('never makes markup from text', () => {
    const markup = { dangerouslySetInnerHTML: { __html: '<b>' } };
    expect(() => safe(h('p', markup))).toThrow(TypeError);
  });

  it('never links to what runs script or leaves over plain HTTP', () => {
    // An issuer on this machine has plain HTTP.
    const own = ['http://127.0.0.1:9/out?client_id=c', 'http://localhost/out', 'http://[::1]:80'];
    for (const href of ['#/audit', '/console/api/audit?x=1', 'https://id.example.com/out', ...own])
      expect(safe(h('a', { href }))).toMatchObject({ href });
    for (const href of [
      'http://localhost.example.com/',
      'http://localhost@example.com',
      'http://127.0.0.1:80@example.com/',
      'http://127.0.0.1.example.com/',
      'http://localhost\\@example.com/',
    ])
      expect(() => safe(h('a', { href }))).toThrow(TypeError);
    const schemes = [
      'javascript:',
      'JavaScript:',
      ' javascript:',
      'data:',
      'http:',
      'vbscript:',
      '//',
      '/',
      'file:',
    ];
    fc.assert(
      fc.property(fc.constantFrom(...schemes), fc.string(), (scheme, rest) => {
        const href = `${scheme}${rest}`;
        fc.pre(!/^\/console\b/.test(href));
        expect(() => safe(h('a', { href }))).toThrow(TypeError);
      }),
    );
  });

  it('never links to a value that is no text, which a browser would make text of', () => {
    for (const href of [['javascript:x'], { toString: () => 'javascript:x' }, 5, true])
      expect(() => safe(h('a', { href } as object))).toThrow(TypeError);
    expect(safe(h('a', { href: undefined } as object))).toEqual({});
  });
});
