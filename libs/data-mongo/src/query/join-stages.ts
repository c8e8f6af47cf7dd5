import type { Document } from 'mongodb';
import { canonicalClassName } from '#agent';
import { StoreError } from '#data';
import { untranslatable } from '../errors.js';
import { isPlainObject } from '../storage/own-property.js';
import type { StorageNames } from '../storage/storage-names.js';
import { ExpressionMapper, type Variables } from './expression-to-storage.js';
import { type JoinSide, rewriteJoin } from './lookup-rewrite.js';
import { RowScope } from './row-scope.js';
import { stripInside } from './source-strip.js';
import type { StageContext } from './stage-context.js';
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
  // Pointers hold `Class$id`, ids do not: without a column that keeps both, nothing would ever meet.
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
  // The depth is written under the name as it stands: read back, it must not mean the column a field of that name has.
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
