import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AuditEntry, RecentAuditTrail } from '#audit';
import { auditCsv, CSV_LIMITS } from './audit-csv.js';

async function readFile(records: readonly object[], limits = CSV_LIMITS): Promise<string[][]> {
  const trail = new RecentAuditTrail();
  const [type, chain, at] = ['tool_call', 'c', '2026-01-01T00:00:00.000Z'];
  for (const [seq, members] of records.entries())
    trail.remember({ type, chain, at, success: true, seq, ...members } as unknown as AuditEntry);
  let text = '';
  for await (const piece of auditCsv(trail, {}, limits)) text += piece;
  return parseRows(text);
}

/** RFC 4180, read strictly. */
function parseRows(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  for (let found = cell.exec(text); found; found = cell.exec(text)) {
    row.push(found[1] === undefined ? (found[2] ?? '') : found[1].replaceAll('""', '"'));
    if (found[3] === '\r\n') [rows[rows.length], row] = [row, []];
    if (cell.lastIndex === text.length) return rows;
  }
  throw new Error(`no CSV: ${JSON.stringify(text)}`);
}

describe('a file of audit records', () => {
  it('has a head and a row for each record, newest first', async () => {
    const [head, ...rows] = await readFile([{ tool: 'a' }, { tool: 'b', class_name: 'Post', rows: 3 }]);
    expect(head?.slice(0, 7)).toEqual([
      'at',
      'type',
      'agent_name',
      'tenant_id',
      'principal',
      'tool',
      'class_name',
    ]);
    expect(rows.map((row) => row[5])).toEqual(['b', 'a']);
    expect(rows[0]?.[6]).toBe('Post');
  });

  it('says where it ends before the records do, and how to go on', async () => {
    const rows = await readFile([{}, {}, {}], { records: 2, searches: 9 });
    expect(rows).toHaveLength(4);
    expect(rows.at(-1)?.join(' ')).toMatch(/cut .*2 records; cursor=\S+ continues/);
  });

  it('never holds a cell that a spreadsheet runs, and loses no text, whatever was recorded', async () => {
    const start = fc.constantFrom('=', '+', '-', '@', '\t', '\r', '', ' =', '\n=', 'x;=', 'x;"=', '＝');
    const text = fc.tuple(start, fc.string({ unit: 'binary' })).map(([first, rest]) => first + rest);
    await fc.assert(
      fc.asyncProperty(text, text, async (tool, cause) => {
        const [, row = []] = await readFile([{ tool, cause }]);
        expect(row.filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
        const others = row.flatMap((cell) => cell.split(/[;\t\r\n]/));
        expect(others.filter((cell) => /^[\s"]*[=+\-@＝＋－＠]/.test(cell))).toEqual([]);
        const stripQuotes = (cell: string | undefined) => cell?.replaceAll("'", '');
        expect([stripQuotes(row[5]), stripQuotes(row[14])]).toEqual([stripQuotes(tool), stripQuotes(cause)]);
      }),
    );
  });
});
