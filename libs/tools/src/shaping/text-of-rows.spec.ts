import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ParseRow } from '#data';
import {
  callOf,
  runTool,
  sampleClass,
  SampleExportStore,
  SampleRecords,
} from '../contracts/sample-records.js';
import { ExportData } from '../export/export-data.js';
import { QueryClass } from '../read/query-class.js';
import { ToolContent } from '../tool.js';
import { fitToSize, withNotes } from './fit-to-size.js';

const POSTS = [sampleClass('Post', { title: { type: 'String' } })];
const exporting = new ExportData(new SampleExportStore());
const querying = new QueryClass();
type Run = (args: object, records: SampleRecords) => Promise<unknown>;
const runExport: Run = (args, records) => runTool(exporting, 'export', args, callOf(exporting, records));
const runQuery: Run = (args, records) => runTool(querying, 'query', args, callOf(querying, records));
const TOOLS = [
  ['export_data', runExport],
  ['query_class', runQuery],
] as const;

interface Part {
  readonly row_count: number;
  readonly output: string;
  readonly note?: string;
  readonly truncated?: boolean;
  readonly _truncated?: object;
  readonly next_call?: { readonly tool: string; readonly arguments: Record<string, unknown> };
}

const titles = fc.array(fc.string({ maxLength: 120 }), { maxLength: 40 });
const toRows = (texts: readonly string[]): ParseRow[] =>
  texts.map((title, index) => ({ objectId: `r${index}`, title }));

describe('a text of rows beyond the size of a result', () => {
  it('is cut at a row and says so, and its next calls write every row once, each within the size', async () => {
    await fc.assert(
      fc.asyncProperty(
        titles,
        fc.constantFrom(...TOOLS),
        fc.integer({ min: 1_200, max: 6_000 }),
        fc.boolean(),
        fc.constantFrom(new Set<string>(), new Set(['A remark.'])),
        async (texts, [name, run], cap, pretty, notes) => {
          const records = new SampleRecords(toRows(texts), POSTS);
          const lines: string[] = [];
          let args: Record<string, unknown> | undefined = { class_name: 'Post', format: 'csv', limit: 100 };
          while (args) {
            const data = await run(args, records);
            const sent = fitToSize(name, withNotes(data, notes), { cap, pretty });
            if (!('text' in sent)) throw new Error(sent.message);
            expect(Buffer.byteLength(sent.text)).toBeLessThanOrEqual(cap);
            const part = JSON.parse(sent.text) as Part;
            const isCut = part.next_call !== undefined;
            expect([part.truncated === true, part._truncated !== undefined]).toEqual([isCut, isCut]);
            expect(part.note).toBe([...notes][0]);
            lines.push(part.output.slice(part.output.indexOf('\n') + 1));
            expect(part.row_count).toBeGreaterThan(isCut ? 0 : -1);
            args = part.next_call?.arguments;
          }
          const whole = await runExport({ class_name: 'Post', limit: 100 }, records);
          const { output } = whole as Part;
          expect(lines.join('')).toBe(output.slice(output.indexOf('\n') + 1));
        },
      ),
      { numRuns: 80 },
    );
  });

  it('is refused with its heaviest columns where not one row fits', async () => {
    const records = new SampleRecords(toRows(['x'.repeat(5_000), 'y']), POSTS);
    for (const [name, run] of TOOLS) {
      const data = await run({ class_name: 'Post', format: 'csv' }, records);
      expect(fitToSize(name, data, { cap: 1_200 })).toMatchObject({
        gate: 'result_size',
        message: expect.stringContaining('Largest fields by bytes: title'),
      });
    }
  });

  it('of a pipeline says how to reach the other rows', async () => {
    const records = new SampleRecords(
      toRows(Array.from({ length: 50 }, (_, index) => `${index}`.repeat(50))),
      POSTS,
    );
    const args = { class_name: 'Post', pipeline: [{ $match: {} }] };
    const sent = fitToSize('export_data', await runExport(args, records), {
      cap: 2_000,
    });
    const part = ('data' in sent ? sent.data : {}) as Part & { hint: string };
    expect(part).not.toHaveProperty('next_call');
    expect(part.hint).toContain(`end the pipeline with $sort and {"$skip":${part.row_count}}`);
  });
});

describe('remarks on an answer', () => {
  it('stand behind one of its own', () => {
    const said = withNotes({ note: 'Its own.', results: [] }, new Set(['One.', 'Two.']));
    expect(said).toEqual({ note: 'Its own; One; Two.', results: [] });
  });

  it('are one more block of content that is sent as it is', () => {
    const content = new ToolContent([{ type: 'text', text: 'A link' }], { uri: 'x' });
    expect(withNotes(content, new Set(['One.', 'Two']))).toEqual(
      new ToolContent([...content.blocks, { type: 'text', text: 'One; Two' }], content.data),
    );
  });
});
