import type { Document } from 'mongodb';
import { canonicalClassName } from '#core';
import { StoreError } from '#data';
import { type FieldSchema, isPlainObject } from '#policy';
import { untranslatable } from '../errors.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { ExpressionMapper, type StageContext, type Variables } from './expression-to-storage.js';
import { toOtherForm, unifyIds } from '../storage/mixed-references.js';
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
  const foreign = context.findStorage(from);
  const { let: variables, types } = letToStorage(lookup['let'], scope, context.variables);
  const joined = context.convertJoinedPipeline(subPipeline(lookup['pipeline']), foreign, types);
  const join = createJoin(lookup, scope, foreign, context);
  const bound = { ...variables, ...join.let };
  scope.introduce(as, { rows: joined.scope });
  return [
    {
      $lookup: {
        from: foreign.collection,
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

function createJoin(lookup: Stage, scope: RowScope, foreign: ClassStorage, context: StageContext): Join {
  const localField = text(lookup['localField']);
  const foreignField = text(lookup['foreignField']);
  if (localField === undefined || foreignField === undefined) return { fields: {}, let: {}, match: [] };
  const local: JoinSide = { name: localField, ref: scope.resolve(localField), storage: scope.identityClass };
  const other: JoinSide = {
    name: foreignField,
    ref: RowScope.ofClass(foreign).resolve(foreignField),
    storage: foreign,
  };
  const plain = {
    fields: { localField: local.ref.column, foreignField: other.ref.column },
    let: {},
    match: [],
  };
  const { field } = other.ref;
  if (field?.mixedIds) return joinAnyForm(local, other.ref.column, field);
  return context.rewriteLookups ? (rewriteJoin(local, other) ?? plain) : plain;
}

/**
 * A join with a column whose documents hold ids in several forms. A single id is compared with each of its forms, so that an
 * index serves the join.
 */
function joinAnyForm(local: JoinSide, column: string, field: FieldSchema): RewrittenJoin {
  const variable = variableFor('rwIds_', local.name);
  const id = `$$${variable}`;
  const stored = `$${column}`;
  const isSingle = field.type === 'Pointer' && !local.ref.list && local.ref.field?.type !== 'Array';
  const condition = isSingle
    ? { $or: [{ $eq: [stored, id] }, { $eq: [stored, toOtherForm(id, field)] }] }
    : { $gt: [{ $size: { $setIntersection: [toList(unifyIds(stored, field)), toList(id)] } }, 0] };
  return byVariable(variable, `$${local.ref.column}`, condition);
}

const toList = (value: unknown): Document => ({ $cond: [{ $isArray: [value] }, value, [value]] });

function letToStorage(
  value: unknown,
  scope: RowScope,
  outer: Variables,
): { readonly let: Document; readonly types: Variables } {
  if (value === undefined) return { let: {}, types: outer };
  const variables = stageObject(value, '$lookup.let');
  const mapper = new ExpressionMapper(scope, outer);
  const types = Object.entries(variables).map(
    ([name, expression]) => [name, mapper.findType(expression).rows] as const,
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
  const foreign = context.findStorage(from);
  const rows = RowScope.ofClass(foreign);
  const back = rows.resolve(connectFrom);
  let to = rows.resolve(connectTo);
  if (back.field?.mixedIds || to.field?.mixedIds)
    throw holdsTwoForms(back.field?.mixedIds ? connectFrom : connectTo);
  // Pointers hold `Class$id`, ids do not: without a column that stores both, the join would match nothing.
  if (back.field?.type === 'Pointer' && to.column === '_id' && !back.form.pointersAreIds) {
    if (!foreign.field('parseReference'))
      throw new StoreError('unsupported', { cause: new Error('$graphLookup over a pointer to an id') });
    to = rows.resolve('parseReference');
  }
  const depth = text(graph['depthField']);
  const mapped = {
    ...graph,
    ...(depth !== undefined && { depthField: foreign.depthColumn(depth) }),
    from: foreign.collection,
    startWith: new ExpressionMapper(scope, context.variables).map(graph['startWith']),
    connectFromField: back.column,
    connectToField: to.column,
    ...(graph['restrictSearchWithMatch'] !== undefined && {
      restrictSearchWithMatch: whereToQuery(
        stageObject(graph['restrictSearchWithMatch'], 'restrictSearchWithMatch'),
        {
          resolve: (path) => rows.resolve(path),
          rights: (right, principals) => rows.rightsToQuery(right, principals),
          filterOnly: true,
          expression: (expression) => new ExpressionMapper(rows).map(expression),
        },
      ),
    }),
  };
  // The depth is written under its literal name: when it is read, the name must not map to the column of a field of that
  // name.
  const found = RowScope.ofClass(foreign.source([]).storage);
  if (depth !== undefined) found.introduce(depth);
  scope.introduce(as, { rows: found });
  return [{ $graphLookup: mapped }, ...foreign.buildReducedInside(as, depth)];
}

function holdsTwoForms(column: string): StoreError {
  const advice = `'${column}' holds ids in two forms, which $graphLookup cannot follow: use $lookup`;
  return new StoreError('unsupported', { cause: new Error(advice), advice });
}

export function unionToStorage(value: unknown, _scope: RowScope, context: StageContext): Document[] {
  const union = typeof value === 'string' ? { coll: value } : stageObject(value, '$unionWith');
  const coll = className(union['coll'] ?? (union as Stage)['from'], '$unionWith');
  const foreign = context.findStorage(coll);
  const inner = subPipeline((union as Stage)['pipeline']);
  const { stages } = context.convertJoinedPipeline(inner, foreign, context.variables);
  return [{ $unionWith: { coll: foreign.collection, pipeline: [...stages] } }];
}

/** One side of an equality join: the name as written and the column it refers to. */
interface JoinSide {
  readonly name: string;
  readonly ref: ScopedRef;
  /** The class whose rows are on this side; null after a stage replaced them. */
  readonly storage: ClassStorage | null;
}

interface RewrittenJoin {
  readonly fields: { readonly localField?: string; readonly foreignField?: string };
  readonly let: Document;
  readonly match: readonly Document[];
}

/** A column in which a class stores `Class$id` of each of its rows. */
const SELF_REFERENCE = 'parseReference';

const isId = (side: JoinSide): boolean => side.ref.column === '_id' && side.ref.field?.type !== 'Pointer';

function pointsAt(pointer: JoinSide, target: ClassStorage): boolean {
  const { field, nested } = pointer.ref;
  if (nested || field?.type !== 'Pointer') return false;
  return field.targetClass === undefined || field.targetClass === target.className;
}

const variableFor = (prefix: string, name: string): string => prefix + name.replace(/\W/g, '_');

/**
 * Joins between a pointer (`Class$id`) and an id, whichever side the pointer is on; null when the stage is no such join. The
 * foreign side is always a bare column, so that its index serves the join.
 */
function rewriteJoin(local: JoinSide, foreign: JoinSide): RewrittenJoin | null {
  const [pointer, id] = isId(foreign) ? [local, foreign] : [foreign, local];
  const target = id.storage;
  if (!isId(id) || !target || pointer.ref.form.pointersAreIds || !pointsAt(pointer, target)) return null;
  return id === foreign ? forward(local, target) : reverse(local, foreign, target);
}

function forward(local: JoinSide, target: ClassStorage): RewrittenJoin {
  if (target.field(SELF_REFERENCE) && !local.ref.list) return plainly(local.ref.column, SELF_REFERENCE);
  const variable = variableFor('rwLookupId_', local.name);
  const reference = `$${local.ref.column}`;
  const id = (pointer: string) => target.idOfReference(pointer);
  if (!local.ref.list) return byVariable(variable, id(reference), { $eq: ['$_id', `$$${variable}`] });
  const ids = { $map: { input: { $cond: [{ $isArray: [reference] }, reference, []] }, in: id('$$this') } };
  return byVariable(variable, ids, { $in: ['$_id', `$$${variable}`] });
}

function reverse(local: JoinSide, foreign: JoinSide, target: ClassStorage): RewrittenJoin {
  if (target.field(SELF_REFERENCE)) return plainly(SELF_REFERENCE, foreign.ref.column);
  const variable = variableFor('rwReverseId_', foreign.name);
  const reference = { $concat: [`${target.className}$`, target.textOfId(`$${local.ref.column}`)] };
  return byVariable(variable, reference, { $eq: [`$${foreign.ref.column}`, `$$${variable}`] });
}

function plainly(localField: string, foreignField: string): RewrittenJoin {
  return { fields: { localField, foreignField }, let: {}, match: [] };
}

function byVariable(variable: string, value: unknown, condition: Document): RewrittenJoin {
  return { fields: {}, let: { [variable]: value }, match: [{ $match: { $expr: condition } }] };
}
