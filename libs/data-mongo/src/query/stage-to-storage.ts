import { setOwn } from '#core';
import type { Document } from 'mongodb';
import { listProjectedNames, takeRoot, isPlainObject } from '#policy';
import { untranslatable } from '../errors.js';
import {
  ExpressionMapper,
  sortKeysToStorage,
  type StageContext,
  type Variables,
} from './expression-to-storage.js';
import { sumExactly } from './exact-numbers.js';
import { graphLookupToStorage, lookupToStorage, unionToStorage } from './join-stages.js';
import { columnWith, type Content, type RowScope, type ScopedColumn, writeNames } from './row-scope.js';
import { whereToQuery } from './where-to-query.js';

/** Maps the value of one stage and updates the scope to the state after it. Returns the stages that replace it. */
type StageTranslator = (value: unknown, scope: RowScope, context: StageContext) => Document[];

const readObject = (value: unknown, stage: string): Record<string, unknown> => {
  if (!isPlainObject(value)) throw untranslatable(`${stage} needs an object`);
  return value;
};

function match(value: unknown, scope: RowScope, context: StageContext): Document[] {
  const mapper = new ExpressionMapper(scope, context.variables);
  const query = whereToQuery(readObject(value, '$match'), {
    resolve: (path) => scope.resolve(path),
    rights: (right, principals) => scope.rightsToQuery(right, principals),
    filterOnly: true,
    expression: (expression) => mapper.map(expression),
  });
  return [{ $match: query }];
}

function addFields(value: unknown, scope: RowScope, context: StageContext): Document[] {
  const mapper = new ExpressionMapper(scope, context.variables);
  const fields = readObject(value, '$addFields');
  const mapped: Document = {};
  const outputs: [string, Content][] = [];
  for (const [key, expression] of Object.entries(fields)) {
    const inside = key.includes('.');
    setOwn(mapped, inside ? scope.resolve(key).column : key, mapper.map(expression));
    if (!inside) outputs.push([key, mapper.findType(expression)]);
  }
  const replaced = outputs
    .map(([name, type]) => scope.introduce(name, type))
    .filter((column) => column !== undefined);
  return [{ $addFields: mapped }, ...(replaced.length > 0 ? [{ $unset: replaced }] : [])];
}

function unset(value: unknown, scope: RowScope): Document[] {
  const paths = (Array.isArray(value) ? value : [value]).filter((path) => typeof path === 'string');
  // Two names may map to one column, which the database accepts only once.
  const columns = new Set(paths.flatMap((path) => scope.listRemovedColumns(path)));
  return columns.size > 0 ? [{ $unset: [...columns] }] : [];
}

/** The form that `$group`, `$bucket` and `$bucketAuto` share: `_id` and named accumulators replace the rows. */
function convertGrouped(
  key: unknown,
  outputs: Readonly<Record<string, unknown>>,
  mapper: ExpressionMapper,
  scope: RowScope,
): Document {
  const names = new Map([['_id', columnWith('_id', mapper.findType(key))]]);
  const mapped: Document = {};
  for (const [name, accumulator] of Object.entries(sumExactly(outputs, scope, mapper))) {
    setOwn(mapped, name, mapper.map(accumulator));
    names.set(name, columnWith(name, mapper.findType(accumulator)));
  }
  scope.replaceBy(names);
  return mapped;
}

function group(value: unknown, scope: RowScope, context: StageContext): Document[] {
  const mapper = new ExpressionMapper(scope, context.variables);
  const { _id, ...accumulators } = readObject(value, '$group');
  if (_id === undefined) throw untranslatable('$group needs _id');
  const key = mapper.map(_id);
  return [{ $group: { _id: key, ...convertGrouped(_id, accumulators, mapper, scope) } }];
}

const bucket =
  (stage: '$bucket' | '$bucketAuto'): StageTranslator =>
  (value, scope, context) => {
    const mapper = new ExpressionMapper(scope, context.variables);
    const form = readObject(value, stage);
    const { groupBy, output, boundaries, ...others } = form;
    const outputs = output === undefined ? { count: { $sum: 1 } } : readObject(output, `${stage}.output`);
    const mapped = {
      ...(mapper.map(others) as Document),
      ...(boundaries !== undefined && { boundaries: mapper.mapBoundaries(boundaries, groupBy) }),
      groupBy: mapper.map(groupBy),
    };
    const accumulators = convertGrouped(undefined, outputs, mapper, scope);
    return [{ [stage]: { ...mapped, ...(output !== undefined && { output: accumulators }) } }];
  };

function sortByCount(value: unknown, scope: RowScope, context: StageContext): Document[] {
  const mapper = new ExpressionMapper(scope, context.variables);
  const key = mapper.map(value);
  convertGrouped(value, { count: { $sum: 1 } }, mapper, scope);
  return [{ $sortByCount: key }];
}

function count(value: unknown, scope: RowScope): Document[] {
  if (typeof value !== 'string') throw untranslatable('$count needs a name');
  scope.replaceBy(new Map([[value, columnWith(value, {})]]));
  return [{ $count: value }];
}

function sort(value: unknown, scope: RowScope): Document[] {
  return [{ $sort: sortKeysToStorage(readObject(value, '$sort'), (path) => scope.resolve(path).column) }];
}

function unwind(value: unknown, scope: RowScope): Document[] {
  const form = typeof value === 'string' ? { path: value } : readObject(value, '$unwind');
  const { path } = form;
  if (typeof path !== 'string' || !path.startsWith('$')) throw untranslatable('$unwind needs a path');
  const name = path.slice(1);
  const { column, field, rows, list } = scope.resolve(name);
  if (list) scope.introduce(name, { field, rows });
  const index = (form as Record<string, unknown>)['includeArrayIndex'];
  if (typeof index === 'string') scope.introduce(takeRoot(index));
  const mapped = `$${column}`;
  return [{ $unwind: typeof value === 'string' ? mapped : { ...form, path: mapped } }];
}

const replaceRoot =
  (stage: '$replaceRoot' | '$replaceWith'): StageTranslator =>
  (value, scope, context) => {
    const mapper = new ExpressionMapper(scope, context.variables);
    const root = stage === '$replaceRoot' ? readObject(value, stage)['newRoot'] : value;
    const mapped = mapper.map(root);
    scope.become(mapper.findType(root).rows);
    return [{ [stage]: stage === '$replaceRoot' ? { newRoot: mapped } : mapped }];
  };

function facet(value: unknown, scope: RowScope, context: StageContext): Document[] {
  const branches = readObject(value, '$facet');
  const mapped: Document = {};
  const names = new Map<string, ScopedColumn>();
  for (const [name, stages] of Object.entries(branches)) {
    if (!Array.isArray(stages) || !stages.every(isPlainObject))
      throw untranslatable('a facet is a list of stages');
    const branch = context.branch(stages, scope.fork());
    setOwn(mapped, name, branch.stages);
    names.set(name, columnWith(name, { rows: branch.scope }));
  }
  scope.replaceBy(names);
  return [{ $facet: mapped }];
}

const asWritten =
  (stage: string): StageTranslator =>
  (value) => [{ [stage]: value }];

const expression =
  (stage: string): StageTranslator =>
  (value, scope, context) => [{ [stage]: new ExpressionMapper(scope, context.variables).map(value) }];

/** Every stage that can run. A stage that is not listed is refused, independently of earlier checks. */
export const STAGES: Readonly<Record<string, StageTranslator>> = {
  $match: match,
  $project: (value, scope, context) => [{ $project: projectToStorage(value, scope, context.variables) }],
  $addFields: addFields,
  $set: addFields,
  $unset: unset,
  $group: group,
  $bucket: bucket('$bucket'),
  $bucketAuto: bucket('$bucketAuto'),
  $sortByCount: sortByCount,
  $count: count,
  $sort: sort,
  $limit: asWritten('$limit'),
  $skip: asWritten('$skip'),
  $sample: asWritten('$sample'),
  $unwind: unwind,
  $replaceRoot: replaceRoot('$replaceRoot'),
  $replaceWith: replaceRoot('$replaceWith'),
  $redact: expression('$redact'),
  $lookup: lookupToStorage,
  $graphLookup: graphLookupToStorage,
  $unionWith: unionToStorage,
  $facet: facet,
  $search: asWritten('$search'),
  $searchMeta: asWritten('$searchMeta'),
  $vectorSearch: asWritten('$vectorSearch'),
};

const isFlag = (value: unknown): value is number | boolean =>
  typeof value === 'number' || typeof value === 'boolean';

const isOff = (value: unknown): boolean => value === 0 || value === false;

/** `{ a: { b: 1 } }` includes `a.b`; `{ a: { $op: … } }` computes `a`. */
function isNestedSpec(value: unknown): value is Record<string, unknown> {
  return (
    isPlainObject(value) && !Object.keys(value).some((key) => key.startsWith('$')) && !('__type' in value)
  );
}

function isExclusion(specification: Readonly<Record<string, unknown>>): boolean {
  let onlyIds = true;
  for (const key of Object.keys(specification)) {
    if (key === '_id' || key === 'objectId') continue;
    const value = specification[key];
    if (!isOff(value) && !(isNestedSpec(value) && isExclusion(value))) return false;
    onlyIds = false;
  }
  return !onlyIds || Object.values(specification).every(isOff);
}

/** `$project` in storage names; after it, only the projected names exist. */
function projectToStorage(specification: unknown, scope: RowScope, variables: Variables): Document {
  if (!isPlainObject(specification)) throw untranslatable('$project needs an object');
  if (isExclusion(specification)) return convertExcluded(specification, scope);
  const mapper = new ExpressionMapper(scope, variables);
  const outputs = new Map<string, ScopedColumn>();
  const keep = (path: string) => {
    const root = takeRoot(path);
    const held = outputs.get(root) ?? scope.resolve(root);
    outputs.set(root, writeNames(held, listProjectedNames(specification, root), path.slice(root.length + 1)));
  };
  const projection: Document = {};
  const include = (path: string, flag: number | boolean) => {
    for (const column of scope.listColumns(path)) setOwn(projection, column, flag);
    keep(path);
  };
  const nest = (path: string, value: Readonly<Record<string, unknown>>) => {
    for (const [key, member] of Object.entries(value)) {
      const inner = `${path}.${key}`;
      if (isFlag(member)) include(inner, member);
      else if (isNestedSpec(member) && hasFlags(member)) nest(inner, member);
      else {
        setOwn(projection, scope.resolve(inner).column, mapper.map(member));
        keep(inner);
      }
    }
  };
  for (const [key, value] of Object.entries(specification)) {
    if (isOff(value)) {
      for (const column of scope.listColumns(key)) setOwn(projection, column, value);
    } else if (isFlag(value)) include(key, value);
    else if (isNestedSpec(value) && hasFlags(value)) nest(key, value);
    else {
      setOwn(projection, key, mapper.map(value));
      const root = takeRoot(key);
      outputs.set(root, columnWith(root, root === key ? mapper.findType(value) : {}));
    }
  }
  if (!isOff(specification['_id']) && !isOff(specification['objectId'])) keepId(scope, outputs);
  scope.narrowTo(outputs);
  return projection;
}

/** The id is included unless it is excluded under either of its names, and keeps its name where none is written. */
function keepId(scope: RowScope, outputs: Map<string, ScopedColumn>): void {
  const isWritten = [...outputs.values()].some(({ column, written }) => column === '_id' && written);
  for (const name of ['_id', 'objectId']) {
    if (outputs.has(name)) continue;
    const { written, ...held } = scope.resolve(name);
    if (held.column === '_id') outputs.set(name, isWritten ? held : { ...held, written });
  }
}

function convertExcluded(specification: Readonly<Record<string, unknown>>, scope: RowScope): Document {
  const projection: Document = {};
  for (const [key, value] of Object.entries(specification)) {
    for (const column of scope.listColumns(key)) setOwn(projection, column, value);
  }
  return projection;
}

const hasFlags = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.values(value).some((member) => isFlag(member) || (isNestedSpec(member) && hasFlags(member)));
