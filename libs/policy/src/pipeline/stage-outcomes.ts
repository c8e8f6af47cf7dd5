import { takeRoot } from '../model/field-names.js';
import { commonType, NUMBER, toListType, toObjectType, type ValueType } from '../model/value-type.js';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { readMembers, typeOfAccumulator, typeOfExpression } from './expression-types.js';
import type { AddedFields, AddedTypes, Frame, Outcome } from './frame.js';
import { projectDocuments } from './project-stage.js';
import type { StageName } from './stages.js';

/** What a stage reads besides its documents. */
interface Inner {
  readonly end: (pipeline: object) => Frame | undefined;
  /** The frame of the joined class. */
  readonly source: () => Frame;
}

type Make = (value: unknown, frame: Frame, inner: Inner) => Outcome;

/** What a validated stage makes of the documents, once its names were checked. */
export function findOutcome(name: StageName, value: unknown, frame: Frame, inner: Inner): Outcome {
  return OUTCOMES[name](value, frame, inner);
}

const keepDocuments: Make = () => ({});

/** The roots of output names, spelled as in the document. */
const toNames = (paths: Iterable<string>): AddedFields =>
  new Map([...paths].map(takeRoot).map((root) => [root, root]));

const addFields = (types: AddedTypes): Outcome => ({ introduces: toNames(types.keys()), types });
const makeDocuments = (types: AddedTypes): Outcome => ({ ...addFields(types), replacesSource: true });

function addComputed(value: unknown, frame: Frame): Outcome {
  const types = new Map<string, ValueType | undefined>();
  for (const [path, expression] of Object.entries(readMembers(value))) {
    const root = takeRoot(path);
    types.set(root, path === root ? typeOfExpression(expression, frame) : undefined);
  }
  return addFields(types);
}

/** @param key of `_id` */
function makeGroups(outputs: PlainObject, key: ValueType | undefined, frame: Frame): Outcome {
  return makeDocuments(
    new Map(
      Object.entries(outputs).map(([name, accumulator]) => [
        name,
        name === '_id' ? key : typeOfAccumulator(accumulator, frame),
      ]),
    ),
  );
}

const COUNT_GROUP = { _id: null, count: { $sum: 1 } };

const readOutputs = (output: unknown): PlainObject =>
  output === undefined ? COUNT_GROUP : { _id: null, ...readMembers(output) };

function makeBuckets(value: unknown, frame: Frame): Outcome {
  const { groupBy, output, default: otherwise } = readMembers(value);
  const type = typeOfExpression(groupBy, frame);
  const other =
    otherwise !== undefined && commonType([type, typeOfExpression(otherwise, frame)]) === undefined;
  return makeGroups(readOutputs(output), type && other ? { ...type, uncertain: true } : type, frame);
}

function makeEvenBuckets(value: unknown, frame: Frame): Outcome {
  const { groupBy, output } = readMembers(value);
  const type = typeOfExpression(groupBy, frame);
  const range = toObjectType((name) => (name === 'min' || name === 'max' ? type : undefined));
  return makeGroups(readOutputs(output), range, frame);
}

function unwindList(value: unknown, frame: Frame): Outcome {
  const { path = value, includeArrayIndex } = readMembers(value);
  const types = new Map<string, ValueType | undefined>();
  const [root = '', ...inside] = String(path).slice(1).split('.');
  const type = frame.findType(root, false);
  // A list inside a column is the same for a filter, and of its entries afterwards for an expression.
  types.set(frame.resolveUnchecked(root), inside.length > 0 ? without(type, inside) : takeEntry(type));
  if (typeof includeArrayIndex !== 'string') return { types };
  types.set(takeRoot(includeArrayIndex), NUMBER);
  return { types, introduces: toNames([includeArrayIndex]) };
}

const takeEntry = (type: ValueType | undefined): ValueType | undefined =>
  type?.type === 'Array' ? type.entries : type;

/** The type with the entries of a list in place of the list at a path. */
function without(type: ValueType | undefined, [name, ...rest]: readonly string[]): ValueType | undefined {
  const { member } = type ?? {};
  if (!member || name === undefined) return type;
  const inner = rest.length > 0 ? without(member(name), rest) : takeEntry(member(name));
  return toObjectType((other) => (other === name ? inner : member(other)));
}

/** The new documents contain checked columns only: others were removed before the first stage of the caller. */
function replaceDocuments(value: unknown, frame: Frame): Outcome {
  const { same, names, open } = readNewRoot(value);
  if (same) return {};
  const documents = typeOfExpression(value, frame);
  return { introduces: toNames(names), replacesSource: true, opens: open, documents };
}

/** The documents after `$replaceRoot` or `$replaceWith`. */
interface NewRoot {
  /** The documents are unchanged. */
  readonly same: boolean;
  /** The fields that the expression lists. */
  readonly names: readonly string[];
  /** Whether further fields come from a value: a column, a joined row, pairs. */
  readonly open: boolean;
}

const OPEN: NewRoot = { same: false, names: [], open: true };

/** Determined from the expression alone; its references are checked by `resolveExpression`. */
export function readNewRoot(expression: unknown): NewRoot {
  if (expression === '$$ROOT' || expression === '$$CURRENT') return { same: true, names: [], open: false };
  if (!isPlainObject(expression)) return OPEN;
  const keys = Object.keys(expression);
  if (!keys.some((key) => key.startsWith('$')))
    return { same: false, names: keys.map(takeRoot), open: false };
  const merged = keys.length === 1 ? expression['$mergeObjects'] : undefined;
  if (!Array.isArray(merged)) return OPEN;
  const parts = merged.map(readNewRoot);
  return {
    same: false,
    names: parts.flatMap(({ names }) => names),
    open: parts.some(({ same, open }) => same || open),
  };
}

function joinRows(value: unknown, _frame: Frame, { end, source }: Inner): Outcome {
  const { as, pipeline } = readMembers(value);
  const rows = (Array.isArray(pipeline) ? end(pipeline) : undefined) ?? source();
  const root = takeRoot(String(as));
  return addFields(new Map([[root, as === root ? toListType(rows.documentType) : undefined]]));
}

function followRows(value: unknown, _frame: Frame, { source }: Inner): Outcome {
  const { as, depthField } = readMembers(value);
  const rows = source();
  const row = toObjectType((name) => (name === depthField ? NUMBER : rows.findType(name, true)));
  return addFields(new Map([[String(as), toListType(row)]]));
}

/** Rows of both: what one of them lacks is only in the other. */
function uniteRows(value: unknown, frame: Frame, { end, source }: Inner): Outcome {
  const pipeline = readMembers(value)['pipeline'];
  const others = (Array.isArray(pipeline) ? end(pipeline) : undefined) ?? source();
  const both = (name: string) => {
    if (others.lacks(name)) return frame.findType(name, true);
    if (frame.lacks(name)) return others.findType(name, true);
    return commonType([frame.findType(name, true), others.findType(name, true)]);
  };
  return { documents: toObjectType(both) };
}

function makeFacets(value: unknown, _frame: Frame, { end }: Inner): Outcome {
  return makeDocuments(
    new Map(
      Object.entries(readMembers(value)).map(([name, branch]) => {
        const rows = end(branch as object);
        return [name, rows && toListType(rows.documentType)] as const;
      }),
    ),
  );
}

const OUTCOMES: Readonly<Record<StageName, Make>> = {
  $match: keepDocuments,
  $sort: keepDocuments,
  $limit: keepDocuments,
  $skip: keepDocuments,
  $sample: keepDocuments,
  $redact: keepDocuments,
  $unset: keepDocuments,
  $project: (value, frame) => projectDocuments(readMembers(value), frame),
  $addFields: addComputed,
  $set: addComputed,
  $group: (value, frame) => {
    const outputs = readMembers(value);
    return makeGroups(outputs, typeOfExpression(outputs['_id'], frame), frame);
  },
  $bucket: makeBuckets,
  $bucketAuto: makeEvenBuckets,
  $sortByCount: (value, frame) => makeGroups(COUNT_GROUP, typeOfExpression(value, frame), frame),
  $count: (value) => makeDocuments(new Map([[String(value), NUMBER]])),
  $unwind: unwindList,
  $replaceRoot: (value, frame) => replaceDocuments(readMembers(value)['newRoot'], frame),
  $replaceWith: replaceDocuments,
  $lookup: joinRows,
  $graphLookup: followRows,
  $unionWith: uniteRows,
  $facet: makeFacets,
};
