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

function linesOf(count: number, first = 0, members: object = {}): string {
  const chain = new AuditChain(new RecordSeal());
  let text = '';
  for (let one = first; one < first + count; one += 1)
    text += `${chain.append({ type: 'tool_call', at: at(one), success: one % 3 !== 0, tool: `t${one}`, ...members }).line}\n`;
  return text;
}

/** All pages: what was found, and how many pages it took. */
async function walked(trail: FileAuditTrail, query: AuditQuery = {}) {
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
    await writeFile(`${path}.20260101T000000000Z`, linesOf(7));
    await writeFile(`${path}.20260102T000000000Z`, linesOf(5, 7));
    await writeFile(path, linesOf(4, 12));
    expect(await filesOfSink(path)).toHaveLength(3);
    const { found, pages } = await walked(new FileAuditTrail(path), { limit: 3 });
    expect(found).toEqual(names(0, 15));
    expect(pages).toBeLessThanOrEqual(6);
  });

  it('continues where it was when the file is rotated and written between two pages', async () => {
    await writeFile(path, linesOf(6));
    const trail = new FileAuditTrail(path);
    const first = await trail.search({ limit: 2 });
    await rename(path, `${path}.20260101T000000000Z`);
    await writeFile(path, linesOf(3, 6));
    const { cursor } = first;
    const second = await trail.search({ limit: 2, cursor: cursor as string });
    expect(second.entries.map((entry) => (entry as { tool?: string }).tool)).toEqual(['t3', 't2']);
  });

  it('stops at its limit of records or bytes, says so, and goes on from there', async () => {
    await writeFile(path, linesOf(40));
    const some = new FileAuditTrail(path, { bytes: Infinity, records: 10 });
    const page = await some.search({ tool: 't1' });
    expect(page).toMatchObject({ entries: [], searched: { records: 10, cut: 'records', back_to: at(30) } });
    expect(page.cursor).not.toBeNull();
    expect((await walked(some, { tool: 't1' })).found).toEqual(['t1']);
    await writeFile(path, linesOf(4_000, 0, { cause: 'c'.repeat(200) }));
    const few = new FileAuditTrail(path, { bytes: 300_000, records: Infinity });
    expect(await few.search({ tool: 't1' })).toMatchObject({ entries: [], searched: { cut: 'bytes' } });
    const all = await walked(few, { limit: 200 });
    expect(all.found).toEqual(names(0, 3_999));
  });

  it('leaves out a line that is being written, one that is no record, and one that is too long', async () => {
    await writeFile(path, linesOf(2));
    await appendFile(path, `no record\n{"x":1}\n${'x'.repeat(2_500_000)}\n`);
    await appendFile(path, `${linesOf(2, 2)}{"type":"tool_ca`);
    expect((await walked(new FileAuditTrail(path))).found).toEqual(names(0, 3));
    expect((await walked(new FileAuditTrail(path, { bytes: 400_000, records: 99 }))).found).toEqual(
      names(0, 3),
    );
  });

  it('ends before what is older than the time asked for', async () => {
    await writeFile(path, linesOf(20_000));
    const page = await new FileAuditTrail(path).search({ from: at(19_990), limit: 200 });
    expect(page.entries).toHaveLength(10);
    expect(page.cursor).toBeNull();
    expect(page.searched?.records).toBeLessThan(4_000);
  });

  it('refuses the cursor of another search, and one whose file is gone', async () => {
    await writeFile(path, linesOf(5));
    const trail = new FileAuditTrail(path);
    for (const cursor of ['x', Buffer.from('["file",1]').toString('base64url')])
      await expect(trail.search({ cursor })).rejects.toThrow('cursor: expected');
    const { cursor } = await trail.search({ limit: 1 });
    await rm(path);
    await expect(trail.search({ cursor: cursor as string })).rejects.toThrow('not there any more');
  });

  it('finds every record once, wherever files and pages end', async () => {
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
            await writeFile(last ? path : `${path}.2026010${index + 1}T000000000Z`, linesOf(size, total));
            total += size;
          }
          const { found } = await walked(new FileAuditTrail(path, { bytes: Infinity, records }), { limit });
          expect(found).toEqual(total === 0 ? [] : names(0, total - 1));
        },
      ),
      { numRuns: 40 },
    );
  });
});
