import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AuditQuery } from '../audit-trail.js';
import { AuditChain, RecordSeal } from '../chain/audit-chain.js';
import { FileAuditTrail, filesOfSink } from './file-audit-trail.js';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-trail-'));
  path = join(folder, 'records.jsonl');
});
afterEach(() => rm(folder, { recursive: true }));

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

function createLines(count: number, first = 0, members: object = {}): string {
  const chain = new AuditChain(new RecordSeal());
  let text = '';
  for (let one = first; one < first + count; one += 1)
    text += `${chain.append({ type: 'tool_call', at: at(one), success: one % 3 !== 0, tool: `t${one}`, ...members }).line}\n`;
  return text;
}

/** All pages: what was found, and how many pages it took. */
async function walkTrail(trail: FileAuditTrail, query: AuditQuery = {}) {
  const found: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const page = await trail.search({ ...query, ...(cursor !== null && { cursor }) });
    found.push(...page.entries.map((entry) => String((entry as { tool?: string }).tool)));
    cursor = page.cursor;
    pages += 1;
  } while (cursor !== null && pages < 1_000);
  return { found, pages };
}

const names = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `t${to - index}`);

describe('a search of the file of a sink', () => {
  it('finds nothing where there is no file', async () => {
    expect(await new FileAuditTrail(path).search({})).toMatchObject({
      entries: [],
      cursor: null,
      searched: { store: 'file', records: 0, cut: null },
    });
  });

  it('goes back through rotated files, newest first, without losing or repeating a record', async () => {
    await writeFile(`${path}.20260101T000000000Z`, createLines(7));
    await writeFile(`${path}.20260102T000000000Z`, createLines(5, 7));
    await writeFile(path, createLines(4, 12));
    expect(await filesOfSink(path)).toHaveLength(3);
    const { found, pages } = await walkTrail(new FileAuditTrail(path), { limit: 3 });
    expect(found).toEqual(names(0, 15));
    expect(pages).toBeLessThanOrEqual(6);
  });

  it('continues where it was when the file is rotated and written between two pages', async () => {
    await writeFile(path, createLines(6));
    const trail = new FileAuditTrail(path);
    const first = await trail.search({ limit: 2 });
    await rename(path, `${path}.20260101T000000000Z`);
    await writeFile(path, createLines(3, 6));
    const { cursor } = first;
    const second = await trail.search({ limit: 2, cursor: cursor as string });
    expect(second.entries.map((entry) => (entry as { tool?: string }).tool)).toEqual(['t3', 't2']);
  });

  it('stops at its limit of records or bytes, says so, and goes on from there', async () => {
    await writeFile(path, createLines(40));
    const some = new FileAuditTrail(path, { bytes: Infinity, records: 10 });
    const page = await some.search({ tool: 't1' });
    expect(page).toMatchObject({ entries: [], searched: { records: 10, cut: 'records', back_to: at(30) } });
    expect(page.cursor).not.toBeNull();
    expect((await walkTrail(some, { tool: 't1' })).found).toEqual(['t1']);
    await writeFile(path, createLines(4_000, 0, { cause: 'c'.repeat(200) }));
    const few = new FileAuditTrail(path, { bytes: 300_000, records: Infinity });
    expect(await few.search({ tool: 't1' })).toMatchObject({ entries: [], searched: { cut: 'bytes' } });
    const all = await walkTrail(few, { limit: 200 });
    expect(all.found).toEqual(names(0, 3_999));
  });

  it('leaves out a line that is being written, one that is no record, and one that is too long', async () => {
    await writeFile(path, createLines(2));
    await appendFile(path, `no record\n{"x":1}\n${'x'.repeat(2_500_000)}\n`);
    await appendFile(path, `${createLines(2, 2)}{"type":"tool_ca`);
    expect((await walkTrail(new FileAuditTrail(path))).found).toEqual(names(0, 3));
    expect((await walkTrail(new FileAuditTrail(path, { bytes: 400_000, records: 99 }))).found).toEqual(
      names(0, 3),
    );
  });

  it('ends before what is older than the time asked for', async () => {
    await writeFile(path, createLines(20_000));
    const page = await new FileAuditTrail(path).search({ from: at(19_990), limit: 200 });
    expect(page.entries).toHaveLength(10);
    expect(page.cursor).toBeNull();
    expect(page.searched?.records).toBeLessThan(4_000);
  });

  it('reads no more bytes than it may, however many later files stand before what is asked for', async () => {
    const padding = { cause: 'c'.repeat(500) };
    await writeFile(`${path}.20260101T000000000Z`, createLines(3));
    for (let file = 0; file < 300; file += 1) {
      const name = `${path}.20260102T${String(file).padStart(9, '0')}Z`;
      await writeFile(name, createLines(4, 10_000 + file * 4, padding));
    }
    const bytes = 50_000;
    const trail = new FileAuditTrail(path, { bytes, records: Infinity });
    const first = await trail.search({ to: at(3) });
    expect(first).toMatchObject({ entries: [], searched: { cut: 'bytes' } });
    expect(first.searched?.bytes).toBeLessThanOrEqual(bytes);
    const { found, pages } = await walkTrail(trail, { to: at(3) });
    expect(found).toEqual(names(0, 2));
    expect(pages).toBeGreaterThan(5);
  });

  it('takes any time that a record can have, and refuses others', async () => {
    await writeFile(path, createLines(3));
    const trail = new FileAuditTrail(path);
    const range = { from: '0000-01-01T00:00:00Z', to: '9999-12-31T23:59:59Z' };
    expect((await walkTrail(trail, range)).found).toEqual(names(0, 2));
    for (const time of ['-271821-04-20T00:00:00Z', '+275760-09-13T00:00:00Z', '-000001-12-31T23:59:59Z', 'x'])
      for (const query of [{ from: time }, { to: time }])
        await expect(trail.search(query)).rejects.toThrow(
          'expected a date (2027-01-31) or a time with its zone',
        );
  });

  it('refuses the cursor of another search, and one whose file is gone', async () => {
    await writeFile(path, createLines(5));
    const trail = new FileAuditTrail(path);
    for (const cursor of ['x', Buffer.from('["file",1]').toString('base64url')])
      await expect(trail.search({ cursor })).rejects.toThrow('cursor: expected');
    const { cursor } = await trail.search({ limit: 1 });
    await rm(path);
    await expect(trail.search({ cursor: cursor as string })).rejects.toThrow('not there any more');
  });

  it('finds every record once, wherever files and pages end', { timeout: 180_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 20 }),
        async (sizes, limit, records) => {
          await rm(folder, { recursive: true });
          folder = await mkdtemp(join(tmpdir(), 'parley-trail-'));
          path = join(folder, 'records.jsonl');
          let total = 0;
          for (const [index, size] of sizes.entries()) {
            const last = index === sizes.length - 1;
            await writeFile(last ? path : `${path}.2026010${index + 1}T000000000Z`, createLines(size, total));
            total += size;
          }
          const { found } = await walkTrail(new FileAuditTrail(path, { bytes: Infinity, records }), {
            limit,
          });
          expect(found).toEqual(total === 0 ? [] : names(0, total - 1));
          // Few bytes, and a time that makes each file be looked at first.
          const few = new FileAuditTrail(path, { bytes: 1_000 * records, records: Infinity });
          const ranged = await walkTrail(few, { limit, to: at(10_000) });
          expect(ranged.found).toEqual(found);
        },
      ),
      { numRuns: 40 },
    );
  });
});
