import { takeRoot } from '../model/field-names.js';
import { commonType, toListType, NUMBER, toObjectType, type ValueType } from '../model/value-type.js';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { readMembers, typeOfAccumulator, typeOfExpression } from './expression-types.js';
import type { AddedTypes, Frame, Outcome } from './frame.js';
import type { StageName } from './stages.js';

/** What a stage reads besides its documents. */
interface Inner {
  /** The frame behind an inner pipeline. */
  readonly end: (pipeline: object) => Frame | undefined;
  /** The frame of the joined class. */
  readonly source: () => Frame;
}

type Known = Pick<Outcome, 'types' | 'documents'>;
type TypesOf = (value: unknown, frame: Frame, inner: Inner) => Known;

const UNCHANGED_TYPES: Known = { types: new Map() };
const keepTypes: TypesOf = () => UNCHANGED_TYPES;

/** What is known of the values behind a validated stage whose names were checked. */
export function typesAfter(name: StageName, value: unknown, frame: Frame, inner: Inner): Known {
  return TYPES[name](value, frame, inner);
}

function addTypes(value: unknown, frame: Frame): Known {
  const types = new Map<string, ValueType | undefined>();
  for (const [path, expression] of Object.entries(readMembers(value))) {
    const root = takeRoot(path);
    types.set(root, path === root ? typeOfExpression(expression, frame) : undefined);
  }
  return { types };
}

/** What a `$project` includes keeps its type; a part of a column is a part of its members. */
function projectTypes(value: unknown, frame: Frame): Known {
  const types = new Map<string, ValueType | undefined>();
  for (const [path, member] of Object.entries(readMembers(value))) {
    const root = takeRoot(path);
    const kept = member === true || (typeof member === 'number' && member !== 0);
    const isNested = isPlainObject(member) && !Object.keys(member).some((key) => key.startsWith('$'));
    const name = frame.resolveUnchecked(root);
    if (kept) types.set(name, frame.findType(root, true));
    else if (!isNested && member !== false && member !== 0)
      types.set(root, path === root ? typeOfExpression(member, frame) : undefined);
  }
  // Included unless it is excluded.
  if (!types.has('_id')) types.set('_id', frame.findType('_id', true));
  return { types };
}

function groupTypes(outputs: unknown, key: ValueType | undefined, frame: Frame): Known {
  const types = Object.entries(readMembers(outputs)).map(
    ([name, accumulator]) => [name, typeOfAccumulator(accumulator, frame)] as const,
  );
  return { types: new Map([...types, ['_id', key] as const]) };
}

const COUNT_GROUP = { count: { $sum: 1 } };

function bucketTypes(value: unknown, frame: Frame): Known {
  const { groupBy, output = COUNT_GROUP, default: otherwise } = readMembers(value);
  const type = typeOfExpression(groupBy, frame);
  const other =
    otherwise !== undefined && commonType([type, typeOfExpression(otherwise, frame)]) === undefined;
  return groupTypes(output, type && other ? { ...type, uncertain: true } : type, frame);
}

function evenlyBucketed(value: unknown, frame: Frame): Known {
  const { groupBy, output = COUNT_GROUP } = readMembers(value);
  const type = typeOfExpression(groupBy, frame);
  return groupTypes(
    output,
    toObjectType((name) => (name === 'min' || name === 'max' ? type : undefined)),
    frame,
  );
}

function unwound(value: unknown, frame: Frame): Known {
  const { path = value, includeArrayIndex } = readMembers(value);
  const types = new Map<string, ValueType | undefined>();
  const [root = '', ...inside] = String(path).slice(1).split('.');
  const type = frame.findType(root, false);
  // A list inside a column is the same for a filter, and of its entries afterwards for an expression.
  types.set(frame.resolveUnchecked(root), inside.length > 0 ? without(type, inside) : takeEntry(type));
  if (typeof includeArrayIndex === 'string') types.set(takeRoot(includeArrayIndex), NUMBER);
  return { types };
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

function replaceTypes(value: unknown, frame: Frame): Known {
  if (value === '$$ROOT' || value === '$$CURRENT') return UNCHANGED_TYPES;
  return { types: new Map(), documents: typeOfExpression(value, frame) };
}

function lookupTypes(value: unknown, _frame: Frame, { end, source }: Inner): Known {
  const { as, pipeline } = readMembers(value);
  const rows = (Array.isArray(pipeline) ? end(pipeline) : undefined) ?? source();
  return {
    types: new Map([
      [takeRoot(String(as)), as === takeRoot(String(as)) ? toListType(rows.documentType) : undefined],
    ]),
  };
}

function followTypes(value: unknown, _frame: Frame, { source }: Inner): Known {
  const { as, depthField } = readMembers(value);
  const rows = source();
  const row = toObjectType((name) => (name === depthField ? NUMBER : rows.findType(name, true)));
  return { types: new Map([[String(as), toListType(row)]]) };
}

/** Rows of both: what one of them lacks is only in the other. */
function uniteTypes(value: unknown, frame: Frame, { end, source }: Inner): Known {
  const pipeline = readMembers(value)['pipeline'];
  const others = (Array.isArray(pipeline) ? end(pipeline) : undefined) ?? source();
  const both = (name: string) => {
    if (others.lacks(name)) return frame.findType(name, true);
    if (frame.lacks(name)) return others.findType(name, true);
    return commonType([frame.findType(name, true), others.findType(name, true)]);
  };
  return { types: new Map(), documents: toObjectType(both) };
}

function facetTypes(value: unknown, _frame: Frame, { end }: Inner): Known {
  const types: AddedTypes = new Map(
    Object.entries(readMembers(value)).map(([name, branch]) => {
      const rows = end(branch as object);
      return [name, rows && toListType(rows.documentType)] as const;
    }),
  );
  return { types };
}

const takeNewRoot = (value: unknown): unknown => (value as PlainObject)['newRoot'];

const TYPES: Readonly<Record<StageName, TypesOf>> = {
  $match: keepTypes,
  $sort: keepTypes,
  $limit: keepTypes,
  $skip: keepTypes,
  $sample: keepTypes,
  $redact: keepTypes,
  $unset: keepTypes,
  $project: projectTypes,
  $addFields: addTypes,
  $set: addTypes,
  $group: (value, frame) => {
    const { _id: key, ...outputs } = readMembers(value);
    return groupTypes(outputs, typeOfExpression(key, frame), frame);
  },
  $bucket: bucketTypes,
  $bucketAuto: evenlyBucketed,
  $sortByCount: (value, frame) => groupTypes(COUNT_GROUP, typeOfExpression(value, frame), frame),
  $count: (value) => ({ types: new Map([[String(value), NUMBER]]) }),
  $unwind: unwound,
  $replaceRoot: (value, frame) => replaceTypes(takeNewRoot(value), frame),
  $replaceWith: replaceTypes,
  $lookup: lookupTypes,
  $graphLookup: followTypes,
  $unionWith: uniteTypes,
  $facet: facetTypes,
};
