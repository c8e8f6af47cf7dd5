import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatCsv } from './csv.js';
import { readableText, readFailure, readResult } from './result-table.js';
import { Formats, chooseFormat, visible } from './values.js';

const english = new Formats('en-GB', 'Europe/Berlin');

describe('a result without rows', () => {
  const content = (text: string) => [{ type: 'text', text }];

  it.each([
    ['JSON has indentation', { content: content('{"count":1}') }, '{\n  "count": 1\n}'],
    ['prose stays', { content: content('Done.'), structuredContent: { done: true } }, 'Done.'],
    ['data without text has indentation', { structuredContent: { count: 1 } }, '{\n  "count": 1\n}'],
    ['nothing says so', {}, 'The result is empty.'],
  ])('is readable: %s', (_, result, text) => {
    expect(readableText(result)).toBe(text);
  });
});

describe('a value as its reader sees it', () => {
  it.each([
    [12345.5, '12,345.5'],
    [2019, '2019'],
    [1 / 3, '0.333333'],
    [0.00001, '0.00001'],
    [null, '—'],
    ['2026-01-26T14:49:00.000Z', '26 Jan 2026, 15:49:00'],
    [{ __type: 'Date', iso: '2026-01-26T14:49:00.000Z' }, '26 Jan 2026, 15:49:00'],
    [{ _type: 'Pointer', class: 'Artist', id: 'a1' }, 'Artist a1'],
    [{ __type: 'Object', className: 'Artist', objectId: 'a1', name: 'Ann' }, 'Ann (Artist a1)'],
    [['rock', 'jazz'], 'rock, jazz'],
    [[], '[]'],
    [{ a: 1 }, '{"a":1}'],
  ])('%j is %s', (value, text) => {
    expect(english.formatValue(value)).toBe(text);
  });

  it('is in the language and time zone of the host, and of the browser where those are none', () => {
    const german = new Formats('de-DE', 'UTC');
    expect(german.formatValue(12345.5)).toBe('12.345,5');
    expect(german.formatValue('2026-01-26T14:49:00.000Z', 'minute')).toBe('26.01.2026, 14:49');
    expect(new Formats('no language!', 'Nowhere/Never').timeZone).toBe(new Formats().timeZone);
  });

  it('has no clock in a column of days, and no seconds in a column of minutes', () => {
    const days = ['2019-02-20T00:00:00.000Z', null];
    expect(chooseFormat(days)).toBe('day');
    expect(english.formatValue(days[0], 'day')).toBe('20 Feb 2019');
    expect(chooseFormat(['2019-02-20T10:01:00.000Z', days[0]])).toBe('minute');
    expect(chooseFormat(['2019-02-20T10:01:07.000Z'])).toBe('second');
    expect(chooseFormat(['2019-02-20T10:01:07.000Z', 'soon'])).toBe('value');
    expect(chooseFormat([1, null, 2019])).toBe('number');
    expect(chooseFormat([1, null, 20190])).toBe('grouped');
    expect(english.formatValue(2019, 'grouped')).toBe('2,019');
  });

  it('keeps the calendar of the group', () => {
    expect(english.key('2025-03-09')).toBe('9 Mar 2025');
    expect(new Formats('en-GB', 'America/Los_Angeles').key('2025-03-09 00:00')).toBe('9 Mar 2025, 00:00');
    expect(english.key('2025-W07')).toBe('2025-W07');
  });

  it('never holds a mark that hides or reorders text, and ends', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        expect(visible(text)).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u0000-\u0008\ufeff]/);
        expect(visible(`${text}\u{e0041}\u034f\ufe01`)).toMatch(/\\u\{e0041\}\\u034f\\ufe01$/);
      }),
    );
    expect(visible('x'.repeat(1_000_000)).length).toBeLessThan(5_100);
  });
});

describe('a file of rows', () => {
  it('holds values as the server wrote them', () => {
    const rows = [
      ['a "b", c', -1.5, '2026-01-26T14:49:00.000Z', null, { x: [1] }],
      ['two\nlines', 1e21, { __type: 'Date', iso: '2026-01-26T14:49:00.000Z' }, true, ''],
    ];
    expect(formatCsv(['t', 'n', 'd', 'e', 'o'], rows)).toBe(
      't,n,d,e,o\r\n"a ""b"", c",-1.5,2026-01-26T14:49:00.000Z,,"{""x"":[1]}"\r\n' +
        '"two\nlines",1e+21,2026-01-26T14:49:00.000Z,true,\r\n',
    );
  });

  it('never begins a cell of text as a formula', () => {
    const start = fc.constantFrom('=', '+', '-', '@', '\t', '\r');
    fc.assert(
      fc.property(start, fc.string(), (mark, rest) => {
        const [, line = ''] = formatCsv(['a'], [[mark + rest]]).split('a\r\n');
        expect(line.replace(/^"/, '')[0]).toBe("'");
        expect(formatCsv([mark + rest], []).replace(/^"/, '')[0]).toBe("'");
      }),
    );
  });

  it('never begins a cell of text as a formula where a spreadsheet splits at semicolons, and keeps numbers', () => {
    const start = fc.constantFrom('x;=', 'x;"=', 'x\n+', '\n -', ';@', ' =', '＝');
    fc.assert(
      fc.property(start, fc.string(), (mark, rest) => {
        const file = formatCsv([mark + rest], [[mark + rest], [{ text: mark + rest }], [[mark + rest]]]);
        const cells = file.split(/[;\t\r\n]/);
        expect(cells.filter((cell) => /^[\s"]*[=+\-@＝＋－＠]/.test(cell))).toEqual([]);
      }),
    );
    expect(formatCsv(['n'], [[-5]])).toBe('n\r\n-5\r\n');
  });
});

describe('a result', () => {
  const groups = (keys: readonly string[], rest: object = {}) =>
    readResult({ class_name: 'Post', groups: keys.map((key, value) => ({ key, value })), ...rest });

  it('of a year of days is a line of all of them', () => {
    const days = Array.from({ length: 365 }, (_, day) =>
      new Date(Date.UTC(2025, 0, 1 + day)).toISOString().slice(0, 10),
    );
    const table = groups(days, { interval: 'day', field: 'createdAt', operation: 'count' });
    expect(table?.chart).toMatchObject({ kind: 'line', precision: 'day' });
    expect(table?.chart?.points).toHaveLength(365);
    expect(table?.columns).toEqual(['createdAt', 'count']);
  });

  it('says what a chart leaves out', () => {
    expect(groups(['null', '2025-01', '2025-02'])?.chart).toMatchObject({
      kind: 'line',
      notes: ['one group without a date is not drawn'],
    });
    const many = groups(Array.from({ length: 90 }, (_, at) => `g${at}`));
    expect(many?.chart?.points).toHaveLength(40);
    expect(many?.chart?.notes).toEqual(['the 40 greatest of 90 are drawn']);
    expect(many?.rows).toHaveLength(90);
    const averages = readResult({
      groups: [
        { key: 'a', value: 1 },
        { key: 'b', value: null },
        { key: 'c', value: 2 },
      ],
    });
    expect(averages?.chart?.notes).toEqual(['1 without a value']);
  });

  it('says what was cut', () => {
    expect(readResult({ results: [{ a: 1 }], pagination: { has_more: true } })?.notes).toEqual([
      '1 row, there are more',
    ]);
    expect(
      readResult({
        results: [{ a: 1 }],
        truncated_include_fields: { artist: ['biography', 'notes'] },
        _truncated: { dropped_fields: ['body'] },
      })?.notes,
    ).toEqual(['1 row', 'left out for size: body', 'artist without biography, notes']);
    const wide = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`c${at}`, at]));
    expect(readResult({ results: Array.from({ length: 1200 }, () => wide) })?.notes).toEqual([
      '1200 rows',
      'the table has the first 1000',
      'the first 40 of 50 columns',
    ]);
  });

  it('is never anything but a table or nothing, whatever it holds', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('groups', 'results', 'pagination', '_truncated', 'field'),
          fc.jsonValue(),
        ),
        (data) => {
          const table = readResult(data);
          expect(table === null || Array.isArray(table.rows)).toBe(true);
        },
      ),
    );
  });
});

describe('a refused call', () => {
  it('says what happened and what to write instead', () => {
    const failure = readFailure({
      isError: true,
      content: [{ type: 'text', text: "field 'ssn' is not readable" }],
      _meta: {
        'parse.error_code': 'access_denied',
        'parse.retry_after': 12,
        'parse.details': { allowed_fields: ['a', 'b', 3], suggested_rewrite: 'use name', outcome: 'unknown' },
      },
    });
    expect(failure).toEqual({
      message: "field 'ssn' is not readable",
      code: 'access_denied',
      advice: [
        'Instead: use name',
        'It may succeed again in 12 s.',
        'It is unknown whether the change was made: look before trying again.',
      ],
      allowed: ['a', 'b'],
    });
    expect(readFailure({ isError: true })?.message).toBe('The server gave no reason.');
    expect(readFailure({ content: [] })).toBeNull();
  });

  it('says the advice of a body', () => {
    const body = {
      success: false,
      error: 'COLLSCAN',
      error_code: 'invalid_query',
      suggestion: 'add an index',
    };
    expect(
      readFailure({ isError: true, content: [{ type: 'text', text: JSON.stringify(body) }] }),
    ).toMatchObject({
      message: 'COLLSCAN',
      code: 'invalid_query',
      advice: ['Instead: add an index'],
    });
  });
});
