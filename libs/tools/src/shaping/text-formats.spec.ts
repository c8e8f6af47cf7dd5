import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatRows, inferColumns } from './text-formats.js';

const ROWS = [
  { name: 'Ada', grade: 11 },
  { name: 'x, "y"', grade: null },
];

/** Text with characters that the formats must escape, hide or measure, more frequent than in random text. */
const hostile = [
  '"',
  ',',
  '|',
  '\\',
  '\r\n',
  '\n',
  '\r',
  '\t',
  '\u0000',
  '\u001b[2J',
  '\u009b',
  '\u202e',
  '\ufeff',
];
const cellText = fc
  .array(fc.oneof(fc.constantFrom(...hostile, '😀', '\ud800', "'", ' '), fc.string()), { maxLength: 6 })
  .map((parts) => parts.join(''));

const column = (path: string) => ({ header: path, path });
const write = (
  format: 'csv' | 'markdown' | 'table',
  rows: Record<string, unknown>[],
  neutralizeFormulas = false,
) => formatRows(format, rows, inferColumns(rows), { neutralizeFormulas });

/** An independent parser of RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\n)/gy;
  let row: string[] = [];
  while (cell.lastIndex < text.length) {
    const match = cell.exec(text);
    if (!match) throw new Error(`not CSV: ${text}`);
    row.push(match[1] === undefined ? (match[2] ?? '') : match[1].replaceAll('""', '"'));
    if (match[3] === '\n') {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

describe('columns', () => {
  it("are those of all rows, of the first one first, without Parse's own members", () => {
    const row = {
      __type: 'Object',
      className: 'X',
      title: 1,
      ACL: {},
      _rperm: [],
      _wperm: [],
      objectId: 'a',
    };
    expect(inferColumns([row, { more: 1 }])).toEqual([column('title'), column('objectId'), column('more')]);
    expect(inferColumns([])).toEqual([]);
  });

  it('never show a value of a member they leave out', () => {
    const hidden = fc.constantFrom('ACL', '_rperm', '_wperm', '_hashed_password', '_session_token');
    fc.assert(
      fc.property(
        hidden,
        fc.constantFrom('csv' as const, 'markdown' as const, 'table' as const),
        (name, format) => {
          const rows = [{ [name]: 'canary-7f3a', title: 'shown' }];
          expect(write(format, rows)).not.toContain('canary-7f3a');
          expect(write(format, rows)).toContain('shown');
        },
      ),
    );
  });

  it('follow a dotted path through objects only', () => {
    const rows = [{ artist: { name: 'Bob' } }, { artist: [{ name: 'no' }] }, { artist: 'no' }, {}];
    expect(formatRows('csv', rows, [column('artist.name')])).toBe('artist.name\nBob\n""\n""\n""\n');
  });

  it('never reach what an object inherits', () => {
    expect(formatRows('csv', [{ a: 1 }], [column('constructor.name'), column('toString')])).toBe(
      'constructor.name,toString\n"",""\n',
    );
  });
});

describe('csv', () => {
  it('quotes only what needs it and writes nothing as two quotes', () => {
    expect(write('csv', ROWS)).toBe('name,grade\nAda,11\n"x, ""y""",""\n');
  });

  it('writes dates as ISO text, objects and lists as compact JSON', () => {
    const row = {
      at: { __type: 'Date', iso: '2024-01-01T00:00:00.000Z' },
      on: new Date(0),
      tags: ['a'],
      ok: true,
    };
    expect(write('csv', [row])).toBe(
      'at,on,tags,ok\n2024-01-01T00:00:00.000Z,1970-01-01T00:00:00.000Z,"[""a""]",true\n',
    );
  });

  it('comes back from a parser as the very text of every cell', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ a: cellText, b: fc.string() }), {
          minLength: 1,
          maxLength: 4,
        }),
        (rows) => {
          expect(parseCsv(write('csv', rows))).toEqual([['a', 'b'], ...rows.map(({ a, b }) => [a, b])]);
        },
      ),
    );
  });

  it.each(['=1+1', '+1', '-1', '@cmd', '\tx', '\rx'])(
    'keeps %j byte for byte, or prefixes it where asked',
    (cell) => {
      expect(parseCsv(write('csv', [{ cell }]))).toEqual([['cell'], [cell]]);
      expect(parseCsv(write('csv', [{ cell }], true))).toEqual([['cell'], [`'${cell}`]]);
    },
  );

  it('keeps numbers as numbers where formulas are neutralised, negative ones too', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })), (cell) => {
        expect(parseCsv(write('csv', [{ cell }], true))).toEqual([['cell'], [String(cell)]]);
      }),
    );
  });

  it('never starts a cell like a formula where that is asked, headers included, also split at semicolons', () => {
    const splitting = fc
      .tuple(fc.string(), fc.constantFrom(';=', ';"=', '\n+', '\n -', ';@', '＝', 'x'), fc.string())
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(splitting, fc.oneof(splitting, fc.string({ minLength: 1 })), (value, header) => {
        const output = formatRows('csv', [{ value }], [{ header, path: 'value' }], {
          neutralizeFormulas: true,
        });
        const formulas = parseCsv(output)
          .flat()
          .filter((cell) => /^[=+\-@\t\r]/.test(cell));
        expect(formulas).toEqual([]);
        const others = output.split(/[;\t\r\n]/);
        expect(others.filter((cell) => /^[\s"]*[=+\-@＝＋－＠]/.test(cell))).toEqual([]);
      }),
    );
  });
});

describe('markdown', () => {
  it('escapes what would end a cell, in headers too, and ends without a line break', () => {
    expect(write('markdown', [{ 'a|b': 'x|y\\z', c: 'one\r\ntwo\rthree' }])).toBe(
      '| a\\|b | c |\n| --- | --- |\n| x\\|y\\\\z | one two three |',
    );
  });

  it('has one line per row and no bare pipe inside a cell, whatever the cell holds', () => {
    fc.assert(
      fc.property(cellText, (a) => {
        const lines = write('markdown', [{ a, b: 1 }]).split(/\r\n|\r|\n/);
        expect(lines).toHaveLength(3);
        expect((lines[2] ?? '').replace(/\\./gs, '').split('|')).toHaveLength(4);
      }),
    );
  });
});

describe('table', () => {
  it('rules off the header and fills cells to the widest', () => {
    expect(write('table', ROWS)).toBe(
      [
        '+--------+-------+',
        '| name   | grade |',
        '+--------+-------+',
        '| Ada    | 11    |',
        '| x, "y" |       |',
        '+--------+-------+',
      ].join('\n'),
    );
  });

  it('never lets a cell break a line or reach the terminal', () => {
    const control =
      // oxlint-disable-next-line no-control-regex -- these are what must not be there
      /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/;
    fc.assert(
      fc.property(cellText, (cell) => {
        const lines = write('table', [{ cell }]).split('\n');
        expect(lines).toHaveLength(5);
        expect(lines.filter((line) => control.test(line))).toEqual([]);
      }),
    );
  });
});

describe('nothing to write', () => {
  it.each(['csv', 'markdown', 'table'] as const)('is empty text in %s', (format) => {
    expect(formatRows(format, [], [])).toBe('');
  });
});
