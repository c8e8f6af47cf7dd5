import type { Document } from 'mongodb';
import { canonicalClassName } from '#core';
import { StoreError } from '#data';
import { AUTH_DATA_PREFIX } from '#policy';
import { untranslatable } from '../errors.js';
import { isPlainObject } from '../storage/own-property.js';
import { INTERNAL_COLUMNS, type StorageNames } from '../storage/storage-names.js';
import { ExpressionMapper, type StageContext, type Variables } from './expression-to-storage.js';
import { RowScope, type ScopedRef } from './row-scope.js';
import { whereToQuery } from './where-to-query.js';

type Stage = Readonly<Record<string, unknown>>;

function stageObject(value: unknown, stage: string): Record<string, unknown> {
  if (!isPlainObject(value)) throw untranslatable(`${stage} needs an object`);
  return value;
}

function className(value: unknown, stage: string): string {
  if (typeof value !== 'string' || value === '') throw untranslatable(`${stage} needs a class name`);
  return canonicalClassName(value);
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const subPipeline = (value: unknown): readonly Stage[] => {
  if (value === undefined) return [];
  if (!Array.isArray(value) || !value.every(isPlainObject))
    throw untranslatable('a sub-pipeline is a list of stages');
  return value;
};

export function lookupToStorage(value: unknown, scope: RowScope, context: StageContext): Document[] {
  const lookup = stageObject(value, '$lookup');
  const from = className(lookup['from'], '$lookup');
  const as = text(lookup['as']);
  if (as === undefined) throw untranslatable('$lookup needs as');
  const foreign = context.namesOf(from);
  const { let: variables, types } = letToStorage(lookup['let'], scope, context.variables);
  const joined = context.joinedPipeline(subPipeline(lookup['pipeline']), foreign, types);
  const join = joinOf(lookup, scope, foreign, context);
  const bound = { ...variables, ...join.let };
  scope.introduce(as, { rows: joined.scope });
  return [
    {
      $lookup: {
        from,
        ...join.fields,
        ...(Object.keys(bound).length > 0 && { let: bound }),
        pipeline: [...join.match, ...joined.stages],
        as,
      },
    },
  ];
}

interface Join {
  readonly fields: { readonly localField?: string; readonly foreignField?: string };
  readonly let: Document;
  readonly match: readonly Document[];
}

function joinOf(lookup: Stage, scope: RowScope, foreign: StorageNames, context: StageContext): Join {
  const localField = text(lookup['localField']);
  const foreignField = text(lookup['foreignField']);
  if (localField === undefined || foreignField === undefined) return { fields: {}, let: {}, match: [] };
  const local: JoinSide = { name: localField, ref: scope.resolve(localField), names: scope.identityNames };
  const other: JoinSide = {
    name: foreignField,
    ref: RowScope.ofClass(foreign).resolve(foreignField),
    names: foreign,
  };
  const plain = {
    fields: { localField: local.ref.column, foreignField: other.ref.column },
    let: {},
    match: [],
  };
  return context.rewriteLookups ? (rewriteJoin(local, other) ?? plain) : plain;
}

function letToStorage(
  value: unknown,
  scope: RowScope,
  outer: Variables,
): { readonly let: Document; readonly types: Variables } {
  if (value === undefined) return { let: {}, types: outer };
  const variables = stageObject(value, '$lookup.let');
  const mapper = new ExpressionMapper(scope, outer);
  const types = Object.entries(variables).map(
    ([name, expression]) => [name, mapper.typeOf(expression).rows] as const,
  );
  return { let: mapper.map(variables) as Document, types: new Map([...outer, ...types]) };
}

export function graphLookupToStorage(value: unknown, scope: RowScope, context: StageContext): Document[] {
  const graph = stageObject(value, '$graphLookup');
  const from = className(graph['from'], '$graphLookup');
  const [as, connectFrom, connectTo] = [graph['as'], graph['connectFromField'], graph['connectToField']].map(
    text,
  );
  if (as === undefined || connectFrom === undefined || connectTo === undefined)
    throw untranslatable('$graphLookup needs as, connectFromField and connectToField');
  const foreign = context.namesOf(from);
  const rows = RowScope.ofClass(foreign);
  const back = rows.resolve(connectFrom);
  let to = rows.resolve(connectTo);
  // Pointers hold `Class$id`, ids do not: without a column that stores both, the join would match nothing.
  if (back.field?.type === 'Pointer' && to.column === '_id') {
    if (!foreign.field('parseReference'))
      throw new StoreError('unsupported', { cause: new Error('$graphLookup over a pointer to an id') });
    to = rows.resolve('parseReference');
  }
  const mapped = {
    ...graph,
    from,
    startWith: new ExpressionMapper(scope, context.variables).map(graph['startWith']),
    connectFromField: back.column,
    connectToField: to.column,
    ...(graph['restrictSearchWithMatch'] !== undefined && {
      restrictSearchWithMatch: whereToQuery(
        stageObject(graph['restrictSearchWithMatch'], 'restrictSearchWithMatch'),
        {
          resolve: (path) => rows.resolve(path),
          filterOnly: true,
          expression: (expression) => new ExpressionMapper(rows).map(expression),
        },
      ),
    }),
  };
  // The depth is written under its literal name: when it is read, the name must not map to the column of a field of that
  // name.
  const depth = text(graph['depthField']);
  if (depth !== undefined) rows.introduce(depth);
  scope.introduce(as, { rows });
  return [{ $graphLookup: mapped }, ...stripInside(from, as)];
}

export function unionToStorage(value: unknown, _scope: RowScope, context: StageContext): Document[] {
  const union = typeof value === 'string' ? { coll: value } : stageObject(value, '$unionWith');
  const coll = className(union['coll'] ?? (union as Stage)['from'], '$unionWith');
  const { stages } = context.joinedPipeline(
    subPipeline((union as Stage)['pipeline']),
    context.namesOf(coll),
    context.variables,
  );
  return [{ $unionWith: { coll, pipeline: [...stages] } }];
}

/** One side of an equality join: the name as written and the column it refers to. */
interface JoinSide {
  readonly name: string;
  readonly ref: ScopedRef;
  /** The class whose rows are on this side; null after a stage replaced them. */
  readonly names: StorageNames | null;
}

interface RewrittenJoin {
  readonly fields: { readonly localField?: string; readonly foreignField?: string };
  readonly let: Document;
  readonly match: readonly Document[];
}

/** A column in which a class stores `Class$id` of each of its rows. */
const SELF_REFERENCE = 'parseReference';

const isId = (side: JoinSide): boolean => side.ref.column === '_id' && side.ref.field?.type !== 'Pointer';

function pointsAt(pointer: JoinSide, target: StorageNames | null): boolean {
  const { field, nested } = pointer.ref;
  if (nested || field?.type !== 'Pointer') return false;
  return target === null || field.targetClass === undefined || field.targetClass === target.className;
}

const idOf = (reference: string): Document => ({
  $arrayElemAt: [{ $split: [reference, { $literal: '$' }] }, 1],
});

const variableFor = (prefix: string, name: string): string => prefix + name.replace(/\W/g, '_');

/**
 * Joins between a pointer (`Class$id`) and an id, whichever side the pointer is on; null when the stage is no such join. The
 * foreign side is always a bare column, so that its index serves the join.
 */
function rewriteJoin(local: JoinSide, foreign: JoinSide): RewrittenJoin | null {
  if (isId(foreign) && foreign.names && pointsAt(local, foreign.names)) return forward(local, foreign.names);
  if (isId(local) && local.names && pointsAt(foreign, local.names))
    return reverse(local, foreign, local.names);
  return null;
}

function forward(local: JoinSide, target: StorageNames): RewrittenJoin {
  if (target.field(SELF_REFERENCE) && !local.ref.list) return plainly(local.ref.column, SELF_REFERENCE);
  const variable = variableFor('rwLookupId_', local.name);
  const reference = `$${local.ref.column}`;
  if (!local.ref.list) return byVariable(variable, idOf(reference), { $eq: ['$_id', `$$${variable}`] });
  const ids = { $map: { input: { $ifNull: [reference, []] }, in: idOf('$$this') } };
  return byVariable(variable, ids, { $in: ['$_id', `$$${variable}`] });
}

function reverse(local: JoinSide, foreign: JoinSide, target: StorageNames): RewrittenJoin {
  if (target.field(SELF_REFERENCE)) return plainly(SELF_REFERENCE, foreign.ref.column);
  const variable = variableFor('rwReverseId_', foreign.name);
  const reference = { $concat: [`${target.className}$`, `$${local.ref.column}`] };
  return byVariable(variable, reference, { $eq: [`$${foreign.ref.column}`, `$$${variable}`] });
}

function plainly(localField: string, foreignField: string): RewrittenJoin {
  return { fields: { localField, foreignField }, let: {}, match: [] };
}

function byVariable(variable: string, value: Document, condition: Document): RewrittenJoin {
  return { fields: {}, let: { [variable]: value }, match: [{ $match: { $expr: condition } }] };
}

/** Stages that select and order rows but create none: the policy's predicate, `$text` and indexes need them first. */
const KEEPS_ITS_PLACE = new Set([
  '$match',
  '$sort',
  '$skip',
  '$limit',
  '$sample',
  '$search',
  '$searchMeta',
  '$vectorSearch',
]);

/** Only users have login data, in one column per provider, which no fixed list of names can cover. */
const HAS_AUTH_DATA = '_User';

const withoutAuthData = (row: string): Document => ({
  $arrayToObject: {
    $filter: {
      input: { $objectToArray: row },
      as: 'column',
      cond: { $ne: [{ $indexOfBytes: ['$$column.k', AUTH_DATA_PREFIX] }, 0] },
    },
  },
});

const UNSET_INTERNAL: Document = { $unset: [...INTERNAL_COLUMNS] };

function isInclusion(stage: Readonly<Record<string, unknown>> | undefined): boolean {
  const projection = stage?.['$project'];
  return (
    isPlainObject(projection) &&
    Object.keys(projection).some((key) => key !== '_id' && key !== 'objectId' && projection[key] === 1)
  );
}

/**
 * How many leading stages select rows and so precede the removal of the internal columns, and the stages that remove them.
 * After those no expression can reach a secret, even if it renames what it reads.
 */
export function sourceStrip(
  className: string,
  pipeline: readonly Readonly<Record<string, unknown>>[],
): { readonly at: number; readonly stages: readonly Document[] } {
  const first = pipeline.findIndex((stage) => !KEEPS_ITS_PLACE.has(Object.keys(stage)[0] ?? ''));
  const at = first < 0 ? pipeline.length : first;
  const prefixed = className === HAS_AUTH_DATA && !isInclusion(pipeline[at]);
  const byPrefix = { $replaceWith: withoutAuthData('$$ROOT') };
  return { at, stages: prefixed ? [UNSET_INTERNAL, byPrefix] : [UNSET_INTERNAL] };
}

/** The same for rows inside a field, where no stage of their own can run. */
function stripInside(className: string, field: string): Document[] {
  const unset = { $unset: INTERNAL_COLUMNS.map((column) => `${field}.${column}`) };
  if (className !== HAS_AUTH_DATA) return [unset];
  return [
    unset,
    { $addFields: { [field]: { $map: { input: `$${field}`, as: 'row', in: withoutAuthData('$$row') } } } },
  ];
}
