import type { GovernedRecords, ParseRow } from '#data';
import type { ClassPolicy, FieldSchema } from '#policy';
import { Distinct, GroupBy } from '../aggregate/group-by.js';
import { GroupByDate } from '../aggregate/group-by-date.js';
import { callOf, runTool, sampleClass, SampleRecords } from './sample-records.js';

const FIELDS: Readonly<Record<string, FieldSchema>> = {
  genre: { type: 'String' },
  artist: { type: 'Pointer', targetClass: 'Artist' },
  plays: { type: 'Number' },
  tags: { type: 'Array' },
  fans: { type: 'Relation', targetClass: '_User' },
  releasedAt: { type: 'Date' },
};

export type Run = (args: object) => Promise<Record<string, unknown>>;

/** A tool over these rows of one class, and the requests that it made. */
function over<Tool extends object>(
  tool: Tool,
  method: keyof Tool,
  rows: readonly ParseRow[],
  policy: Partial<ClassPolicy> = {},
) {
  const records = new SampleRecords(rows, [sampleClass('Song', FIELDS, policy)]);
  const call = callOf(tool, records as GovernedRecords);
  const run: Run = async (args) => ({
    ...((await runTool(tool, method, { class_name: 'Song', ...args }, call)) as object),
  });
  return { records, run };
}

export const groupBy = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) =>
  over(new GroupBy(), 'group', rows, policy);
export const groupByDate = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) =>
  over(new GroupByDate(), 'group', rows, policy);
export const distinct = (rows: readonly ParseRow[] = []) => over(new Distinct(), 'distinct', rows);

/** What redaction leaves of a value of a withheld class. */
export const withheld = { className: 'Label', __redacted: true };
/** The pipeline that was asked for last. */
export const stagesOf = (records: SampleRecords) =>
  (records.asked.at(-1)?.options as { pipeline: unknown } | undefined)?.pipeline;
