import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lineWriter } from './export-files.js';

const COLUMNS = [
  { header: 'a', path: 'a' },
  { header: 'b', path: 'b.c' },
];
const text = fc.oneof(fc.string(), fc.stringMatching(/^[",\r\n|\\=+@\t -]{0,8}$/));

/** Records of RFC 4180. */
function records(csv: string): string[][] {
  const found: string[][] = [];
  let record: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  for (let match = field.exec(csv); match; match = field.exec(csv)) {
    record.push(match[1] !== undefined ? match[1].replaceAll('""', '"') : (match[2] as string));
    if (match[3] !== ',') {
      found.push(record);
      record = [];
    }
    if (field.lastIndex === csv.length) break;
  }
  expect(field.lastIndex).toBe(csv.length);
  return found;
}

describe('a file written row by row', () => {
  it('as CSV is read back as it was by a reader of RFC 4180, whatever the cells hold', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text)), (rows) => {
        const writer = lineWriter('csv', COLUMNS);
        const csv = writer.head + rows.map(([a, c]) => writer.line({ a, b: { c } })).join('');
        expect(records(csv)).toEqual([['a', 'b'], ...rows]);
      }),
    );
  });

  it('as CSV never begins a cell as a formula where formulas are neutralised', () => {
    fc.assert(
      fc.property(text, (cell) => {
        const { line } = lineWriter('csv', [{ header: 'a', path: 'a' }], { neutralizeFormulas: true });
        expect(records(line({ a: cell }))[0]?.[0]).not.toMatch(/^[=+\-@\t\r]/);
      }),
    );
  });

  it('as CSV keeps a negative number a number where formulas are neutralised', () => {
    const { line } = lineWriter('csv', [{ header: 'a', path: 'a' }], { neutralizeFormulas: true });
    expect([line({ a: -5 }), line({ a: '-5' })]).toEqual(['-5\r\n', "'-5\r\n"]);
  });

  it('as NDJSON has one line per row, which is an object of the headers', () => {
    fc.assert(
      fc.property(text, text, (a, c) => {
        const line = lineWriter('ndjson', COLUMNS).line({ a, b: { c }, other: 1 });
        expect(line.split('\n')).toEqual([expect.any(String), '']);
        expect(JSON.parse(line)).toEqual({ a, b: c });
      }),
    );
    expect(lineWriter('ndjson', COLUMNS, { wholeRows: true }).line({ other: 1 })).toBe('{"other":1}\n');
    expect(lineWriter('ndjson', COLUMNS).line({})).toBe('{"a":null,"b":null}\n');
  });

  it('as Markdown has as many cells in each line as in its head', () => {
    fc.assert(
      fc.property(text, text, (a, c) => {
        const writer = lineWriter('markdown', COLUMNS);
        const bars = (line: string) => line.replace(/\\[\\|]/g, '').split('|').length;
        const line = writer.line({ a, b: { c } });
        expect(bars(line)).toBe(bars(writer.head.split('\n')[0] as string));
        expect(line.indexOf('\n')).toBe(line.length - 1);
      }),
    );
  });
});
