import type { Document } from 'mongodb';
import { untranslatable } from '../errors.js';
import { isPlainObject, setOwn } from '../storage/own-property.js';
import { ExpressionMapper, type Variables } from './expression-to-storage.js';
import type { RowScope, ScopedColumn } from './row-scope.js';

const isFlag = (value: unknown): value is number | boolean =>
  typeof value === 'number' || typeof value === 'boolean';

const isOff = (value: unknown): boolean => value === 0 || value === false;

const rootOf = (path: string): string => path.split('.', 1)[0] as string;

/** `{ a: { b: 1 } }` includes `a.b`; `{ a: { $op: … } }` computes `a`. */
function isNestedSpec(value: unknown): value is Record<string, unknown> {
  return (
    isPlainObject(value) && !Object.keys(value).some((key) => key.startsWith('$')) && !('__type' in value)
  );
}

/** The ACL is three columns. */
function columnsOf(path: string, scope: RowScope): string[] {
  if (path === 'ACL' && scope.sourceNames) return ['_acl', '_rperm', '_wperm'];
  return [scope.resolve(path).column];
}

function isExclusion(specification: Readonly<Record<string, unknown>>): boolean {
  const decisive = Object.entries(specification).filter(([key]) => key !== '_id' && key !== 'objectId');
  if (decisive.length === 0) return Object.values(specification).every(isOff);
  return decisive.every(([, value]) => isOff(value) || (isNestedSpec(value) && isExclusion(value)));
}

/** `$project` in storage names; afterwards only what it named exists. */
export function projectToStorage(specification: unknown, scope: RowScope, variables: Variables): Document {
  if (!isPlainObject(specification)) throw untranslatable('$project needs an object');
  if (isExclusion(specification)) return excluded(specification, scope);
  const mapper = new ExpressionMapper(scope, variables);
  const outputs = new Map<string, ScopedColumn>();
  const projection: Document = {};
  if (!isOff(specification['_id']) && !isOff(specification['objectId'])) keepId(scope, outputs);
  for (const [key, value] of Object.entries(specification)) {
    if (isOff(value)) {
      for (const column of columnsOf(key, scope)) setOwn(projection, column, value);
    } else if (isFlag(value)) include(key, value, scope, projection, outputs);
    else if (isNestedSpec(value) && hasFlags(value)) nest(key, value, mapper, scope, projection, outputs);
    else {
      setOwn(projection, key, mapper.map(value));
      outputs.set(rootOf(key), { column: rootOf(key), ...(!key.includes('.') && mapper.typeOf(value)) });
    }
  }
  scope.narrowTo(outputs);
  return projection;
}

function excluded(specification: Readonly<Record<string, unknown>>, scope: RowScope): Document {
  const projection: Document = {};
  for (const [key, value] of Object.entries(specification)) {
    for (const column of columnsOf(key, scope)) setOwn(projection, column, value);
  }
  return projection;
}

const hasFlags = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.values(value).some((member) => isFlag(member) || (isNestedSpec(member) && hasFlags(member)));

function include(
  path: string,
  flag: number | boolean,
  scope: RowScope,
  projection: Document,
  outputs: Map<string, ScopedColumn>,
): void {
  for (const column of columnsOf(path, scope)) setOwn(projection, column, flag);
  outputs.set(rootOf(path), columnNow(rootOf(path), scope));
}

/** What a root name means before the stage, to be carried past it. */
function columnNow(name: string, scope: RowScope): ScopedColumn {
  const { column, field, rows, list } = scope.resolve(name);
  return { column, ...(field && { field }), ...(rows && { rows }), ...(list && { list }) };
}

/** The id comes along unless it is switched off, under either of its names. */
function keepId(scope: RowScope, outputs: Map<string, ScopedColumn>): void {
  for (const name of ['_id', 'objectId']) {
    const column = columnNow(name, scope);
    if (column.column === '_id') outputs.set(name, column);
  }
}

function nest(
  path: string,
  value: Readonly<Record<string, unknown>>,
  mapper: ExpressionMapper,
  scope: RowScope,
  projection: Document,
  outputs: Map<string, ScopedColumn>,
): void {
  for (const [key, member] of Object.entries(value)) {
    const inner = `${path}.${key}`;
    if (isFlag(member)) include(inner, member, scope, projection, outputs);
    else if (isNestedSpec(member) && hasFlags(member))
      nest(inner, member, mapper, scope, projection, outputs);
    else {
      setOwn(projection, scope.resolve(inner).column, mapper.map(member));
      outputs.set(rootOf(path), columnNow(rootOf(path), scope));
    }
  }
}
