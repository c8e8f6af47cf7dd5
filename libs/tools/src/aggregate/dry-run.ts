import type { Arguments } from '../arguments/argument-readers.js';
import type { ToolCall } from '../tool.js';

const HINT =
  'Nothing was read. Call again with dry_run: false to run this, or pass the pipeline to aggregate to change it.';

type Stages = readonly object[];

const isSaid = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
const isEmpty = (where: unknown): boolean =>
  where === undefined || where === null || (typeof where === 'object' && Object.keys(where).length === 0);

/** What would run, in the caller's own words; every rule that could refuse it has spoken, and nothing was read. */
export async function dryRun(
  className: string,
  request: { readonly where: unknown; readonly stages: Stages; readonly parameters: Arguments },
  call: ToolCall,
) {
  const { where, stages, parameters } = request;
  await call.records.checkAggregate(className, stages, { where });
  return {
    dry_run: true,
    class_name: className,
    pipeline: isEmpty(where) ? stages : [{ $match: where }, ...stages],
    parameters: Object.fromEntries(Object.entries(parameters).filter(([, value]) => isSaid(value))),
    hint: HINT,
  };
}
