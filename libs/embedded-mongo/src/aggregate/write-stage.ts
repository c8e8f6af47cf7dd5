import { type Document, getField, isDocument } from '../bson/document.js';
import { typeName } from '../bson/type-name.js';
import { mongoError, requireOneOf } from '../errors.js';
import { refuseOthers, requireDocument, requireText } from './arguments.js';
import { checkVariableName } from './expression.js';

/** Where the results of a pipeline are to be written; the caller does the writing. */
export type WriteStage =
  | { readonly kind: 'out'; readonly db?: string; readonly coll: string; readonly timeseries?: unknown }
  | {
      readonly kind: 'merge';
      readonly db?: string;
      readonly coll: string;
      /** Fields that identify a document of the target; `_id` by default. */
      readonly on: readonly string[];
      readonly whenMatched: WhenMatched;
      readonly whenNotMatched: 'insert' | 'discard' | 'fail';
      /** Variables for a `whenMatched` pipeline; `$$new` by default. */
      readonly variables: Document;
    };

/** Takes a final `$out` or `$merge` off a pipeline. Errors: 40601 when one stands elsewhere. */
export function splitWriteStage(pipeline: readonly Document[]): { pipeline: Document[]; write?: WriteStage } {
  const last = pipeline.at(-1);
  const writes = pipeline.filter(
    (stage) => isDocument(stage) && (Object.hasOwn(stage, '$out') || Object.hasOwn(stage, '$merge')),
  );
  if (writes.length === 0 || !last) return { pipeline: [...pipeline] };
  if (writes.length > 1 || writes[0] !== last) {
    const name = Object.hasOwn(writes[0] as Document, '$out') ? '$out' : '$merge';
    throw mongoError(40601, `${name} can only be the final stage in the pipeline`);
  }
  const write = Object.hasOwn(last, '$out') ? readOut(last['$out']) : readMerge(last['$merge']);
  return { pipeline: pipeline.slice(0, -1), write };
}

function target(value: unknown, stage: string): { db?: string; coll: string } {
  if (typeof value === 'string') return { coll: checkName(value, stage) };
  if (!isDocument(value))
    throw mongoError(16990, `${stage} only supports a string or object argument, not ${typeName(value)}`);
  refuseOthers(value, ['db', 'coll', ...(stage === '$out' ? ['timeseries'] : [])], stage, 40415);
  const [db, coll] = [getField(value, 'db') ?? undefined, getField(value, 'coll')];
  if (stage === '$out' && db === undefined) throw mongoError(40414, "BSON field '$out.db' is missing");
  if (typeof coll !== 'string' || (db !== undefined && typeof db !== 'string'))
    throw mongoError(16994, `${stage} takes a name or {db, coll}`);
  if (db === '' && stage === '$out') throw mongoError(73, `Invalid ${stage} target database: ''`);
  return db ? { db, coll: checkName(coll, stage) } : { coll: checkName(coll, stage) };
}

function checkName(name: string, stage: string): string {
  if (name.startsWith('system.'))
    throw mongoError(stage === '$out' ? 17385 : 31319, `${stage} cannot write to ${name}`);
  if (name === '' || name.includes('$') || name.includes('\0'))
    throw mongoError(73, `Invalid ${stage} target namespace: '${name}'`);
  return name;
}

const readOut = (spec: unknown): WriteStage => ({
  kind: 'out',
  ...target(spec, '$out'),
  timeseries: isDocument(spec) ? (getField(spec, 'timeseries') ?? undefined) : undefined,
});

function readMerge(spec: unknown): WriteStage {
  const options: Document = isDocument(spec) ? spec : { into: spec };
  refuseOthers(options, ['into', 'on', 'let', 'whenMatched', 'whenNotMatched'], '$merge', 40415);
  const on = Object.hasOwn(options, 'on') ? options['on'] : '_id';
  const fields: unknown[] = Array.isArray(on) ? on : [on];
  if (fields.length === 0 || !fields.every((field) => typeof field === 'string'))
    throw mongoError(51186, "$merge 'on' field must be a string or an array of strings");
  const own = getField(options, 'let') ?? {};
  if (!isDocument(own)) throw mongoError(14, "BSON field '$merge.let' must be an object");
  Object.keys(own).forEach(checkVariableName);
  const whenMatched = readMatchedMode(
    Object.hasOwn(options, 'whenMatched') ? options['whenMatched'] : 'merge',
  );
  if (typeof whenMatched === 'string' && isDocument(options['let']))
    throw mongoError(51199, "$merge takes 'let' only with a pipeline as 'whenMatched'");
  if (Object.hasOwn(own, 'new') && own['new'] !== '$$ROOT')
    throw mongoError(51273, "'let' of $merge may define 'new' only as '$$ROOT'");
  if (
    getField(options, 'whenNotMatched') === 'discard' &&
    (whenMatched === 'keepExisting' || whenMatched === 'fail')
  )
    throw mongoError(51181, `$merge with ${whenMatched} and discard would write nothing`);
  const variables = { new: '$$ROOT', ...own };
  return {
    kind: 'merge',
    ...target(getField(options, 'into'), '$merge into'),
    on: fields as string[],
    whenMatched,
    whenNotMatched: choice(
      getField(options, 'whenNotMatched') ?? 'insert',
      ['insert', 'discard', 'fail'],
      'whenNotMatched',
    ),
    variables,
  };
}

type WhenMatched = 'replace' | 'keepExisting' | 'merge' | 'fail' | readonly Document[];

function readMatchedMode(value: unknown): WhenMatched {
  if (Array.isArray(value))
    return value.map((stage) => requireDocument(stage, "'whenMatched' of $merge", 14));
  requireText(value, "'whenMatched' of $merge", 51191);
  return choice(value, ['replace', 'keepExisting', 'merge', 'fail'], 'whenMatched');
}

function choice<const Value extends string>(value: unknown, allowed: readonly Value[], field: string): Value {
  requireOneOf(value, allowed, `$merge.${field}`);
  return value as Value;
}
