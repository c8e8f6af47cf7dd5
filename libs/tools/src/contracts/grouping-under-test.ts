import type { GovernedRecords, ParseRow } from '#data';
import type { ClassPolicy, FieldSchema } from '#policy';
import { callOf, sampleClass, SampleRecords } from './sample-records.js';
import type { ToolCall } from '../tool.js';
import { Distinct } from '../aggregate/distinct.js';
import { GroupBy } from '../aggregate/group-by.js';
import { GroupByDate } from '../aggregate/group-by-date.js';

const FIELDS: Readonly<Record<string, FieldSchema>> = {
  genre: { type: 'String' },
  artist: { type: 'Pointer', targetClass: 'Artist' },
  plays: { type: 'Number' },
  tags: { type: 'Array' },
  fans: { type: 'Relation', targetClass: '_User' },
  releasedAt: { type: 'Date' },
};

export type Run = (args: object) => Promise<Record<string, unknown>>;
type Handler = (args: Readonly<Record<string, unknown>>, call: ToolCall) => Promise<object>;

/** A tool over these rows of one class, and what it asked for. */
function over(tool: object, handler: Handler, rows: readonly ParseRow[], policy: Partial<ClassPolicy> = {}) {
  const records = new SampleRecords(rows, [sampleClass('Song', FIELDS, policy)]);
  const run: Run = async (args) => ({
    ...(await handler({ class_name: 'Song', ...args }, callOf(tool, records as GovernedRecords))),
  });
  return { records, run };
}

export const groupBy = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) => {
  const tool = new GroupBy();
  return over(tool, (args, call) => tool.group(args, call), rows, policy);
};
export const groupByDate = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) => {
  const tool = new GroupByDate();
  return over(tool, (args, call) => tool.group(args, call), rows, policy);
};
export const distinct = (rows: readonly ParseRow[] = []) => {
  const tool = new Distinct();
  return over(tool, (args, call) => tool.distinct(args, call), rows);
};

/** What redaction leaves of a value of a withheld class. */
export const withheld = { className: 'Label', __redacted: true };
/** The pipeline that was asked for last. */
export const stagesOf = (records: SampleRecords) =>
  (records.asked.at(-1)?.options as { pipeline: unknown } | undefined)?.pipeline;
