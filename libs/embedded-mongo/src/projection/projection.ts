import { compileExpression } from '../aggregate/expression.js';
import { type Document, firstKey, getField, idFirst, isDocument, setField } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { parseFieldPath } from '../bson/path.js';
import { badValue, mongoError } from '../errors.js';
import { type Filter, type QueryContext, readMetadata } from '../query/context.js';
import { compileFilter } from '../query/filter.js';
import { requiresGeoIndex } from '../query/geo.js';
import { applyTree, type ProjectionLeaf, ProjectionNode } from './projection-tree.js';
import { truthy } from '../aggregate/evaluate.js';

/** `$slice: n` or `$slice: [skip, limit]`. Errors: 28667, 28724 and 28725 as the expression of that name. */
function sliceLeaf(argument: unknown): ProjectionLeaf {
  const numbers = (Array.isArray(argument) ? argument : [argument]) as unknown[];
  if (
    numbers.length < (Array.isArray(argument) ? 2 : 1) ||
    numbers.length > 2 ||
    !numbers.every((item) => numberKind(item) !== undefined)
  ) {
    throw mongoError(28667, 'Invalid $slice syntax: expected a number or an array of two numbers');
  }
  const [first = 0, limit] = numbers.map((item) => Math.trunc(toDouble(item)) || 0);
  if (limit !== undefined && limit <= 0)
    throw mongoError(28724, `the limit of $slice must be positive: ${limit}`);
  return {
    kind: 'rewrite',
    rewrite: (value) => (Array.isArray(value) ? sliceArray(value, first, limit) : value),
  };
}

function sliceArray(items: readonly unknown[], first: number, limit: number | undefined): unknown[] {
  if (limit === undefined) return first >= 0 ? items.slice(0, first) : items.slice(first);
  const start = first < 0 ? Math.max(0, items.length + first) : first;
  return items.slice(start, start + limit);
}

/** `$elemMatch` keeps the first matching element, or leaves the field out. Errors: 31275 on a nested path. */
function elementMatchLeaf(path: string, argument: unknown, ctx: QueryContext): ProjectionLeaf {
  if (path.includes('.')) throw mongoError(31275, 'Cannot use $elemMatch projection on a nested field.');
  if (!isDocument(argument)) throw mongoError(31274, 'elemMatch: Invalid argument, object required');
  refuseInElement(argument);
  const filter = compileFilter({ items: { $elemMatch: argument } }, ctx);
  return {
    kind: 'compute',
    evaluate: (root) => {
      const value = getField(root, path);
      if (!Array.isArray(value)) return undefined;
      const index = filter.findMatchedPosition({ items: value });
      return index === undefined ? undefined : [value[index]];
    },
  };
}

/** Errors: 224 and 5626500 for what no element alone can be asked. */
function refuseInElement(argument: Document): void {
  if (Object.hasOwn(argument, '$jsonSchema'))
    throw mongoError(224, '$jsonSchema is not allowed in this context');
  if (requiresGeoIndex(argument))
    throw mongoError(5626500, '$geoNear, $near, and $nearSphere are not allowed in this context');
}

/** `path.$`: of the array at the path only the element that satisfied the filter. */
function positionalProjection(
  path: string,
  base: (doc: Document) => Document,
  filter: Filter | undefined,
): (doc: Document) => Document {
  if (!filter) throw badValue('positional operator requires a query');
  const parts = path.split('.');
  return (doc) => {
    const narrowed = narrow(doc, parts, filter.findMatchedPosition(doc));
    return base(narrowed as Document);
  };
}

function narrow(value: unknown, parts: readonly string[], index: number | undefined): unknown {
  if (Array.isArray(value)) {
    if (index === undefined)
      throw mongoError(51246, "positional operator '.$' couldn't find a matching element");
    if (index >= value.length) throw mongoError(51247, 'positional operator element mismatch');
    return [value[index]];
  }
  const [part, ...rest] = parts;
  if (part === undefined || !isDocument(value) || !Object.hasOwn(value, part)) return value;
  const copy = { ...value };
  setField(copy, part, narrow(getField(value, part), rest, index));
  return copy;
}

type Projection = (doc: Document) => Document;

/** Where a projection stands: `find` knows `$slice`, `$elemMatch` and the positional `$`, `$project` does not. */
type ProjectionPlace = 'find' | 'aggregate';

type Mode = 'inclusion' | 'exclusion';

/**
 * Compiles a projection. The result keeps document order with `_id` first and never changes its input.
 * Errors: 31249 and 31250 for colliding paths, 31253 and 31254 for mixed inclusion and exclusion, 51246 when
 * a positional projection meets a filter without an array condition.
 */
export function compileProjection(
  spec: Document,
  ctx: QueryContext,
  filter?: Filter,
  place: ProjectionPlace = 'find',
): Projection {
  return new ProjectionCompiler(ctx, place, filter).compile(spec);
}

class ProjectionCompiler {
  private mode: Mode | undefined;
  private id: boolean | undefined;
  private readonly tree = new ProjectionNode();
  private hasElementMatch = false;
  private hasComputed = false;
  private positionalPath: string | undefined;

  constructor(
    private readonly ctx: QueryContext,
    private readonly place: ProjectionPlace,
    private readonly filter: Filter | undefined,
  ) {}

  compile(spec: Document): Projection {
    for (const key of Object.keys(spec)) this.field(key, getField(spec, key));
    const inclusive =
      this.hasElementMatch || this.hasComputed || (this.place === 'aggregate' && this.id === true);
    const mode: Mode = this.mode ?? (inclusive || this.id === true ? 'inclusion' : 'exclusion');
    if (this.id !== undefined || mode === 'inclusion') {
      if (!this.tree.children.has('_id')) {
        const keep = this.id ?? true;
        if (mode === 'inclusion' || !keep) this.tree.add(['_id'], { kind: keep ? 'include' : 'exclude' });
      }
    }
    if (this.hasComputed && mode === 'exclusion')
      throw mongoError(31252, 'Cannot use an expression other than $meta in exclusion projection');
    const unnamed = mode === 'inclusion' ? 'drop' : 'keep';
    const { tree, positionalPath, filter } = this;
    const base: Projection = (doc) => idFirst(applyTree(doc, tree, unnamed, doc));
    if (positionalPath === undefined) return base;
    if (mode === 'exclusion') throw mongoError(31395, 'positional projection cannot be used with exclusion');
    return positionalProjection(positionalPath, base, filter);
  }

  private field(key: string, value: unknown, prefix = ''): void {
    const path = prefix + key;
    if (this.place === 'find' && path.endsWith('.$')) {
      if (isDocument(value))
        throw mongoError(31271, 'positional projection cannot be used with an expression or sub object');
      if (inclusionFlag(value) === undefined)
        throw mongoError(31308, 'positional projection cannot be used with a literal');
      this.positional(path.slice(0, -2));
      return;
    }
    const flag = inclusionFlag(value);
    if (flag !== undefined) this.choose(path, flag);
    else if (isDocument(value)) this.objectField(path, value);
    else this.compute(path, value);
  }

  private choose(path: string, include: boolean): void {
    const { parts } = parseFieldPath(path);
    if (path === '_id') {
      if (this.id !== undefined || this.tree.children.has('_id'))
        throw mongoError(31250, 'Path collision at _id');
      this.id = include;
      return;
    }
    this.decide(include ? 'inclusion' : 'exclusion', path);
    this.tree.add(parts, { kind: include ? 'include' : 'exclude' });
  }

  private objectField(path: string, value: Document): void {
    const first = firstKey(value);
    if (first === undefined)
      throw mongoError(51270, 'An empty sub-projection is not a valid value. Found empty object at path');
    if (!first.startsWith('$')) {
      for (const key of Object.keys(value)) this.field(key, getField(value, key), `${path}.`);
      return;
    }
    const argument = getField(value, first);
    const ofFind = first === '$slice' || first === '$elemMatch';
    if (this.place === 'find' && ofFind && Object.keys(value).length > 1)
      throw mongoError(16410, "FieldPath field names may not start with '$'");
    if (this.place === 'find' && first === '$slice' && !expressionSlice(argument)) {
      this.tree.add(parseFieldPath(path).parts, sliceLeaf(argument));
    } else if (this.place === 'find' && first === '$elemMatch') {
      if (this.positionalPath !== undefined)
        throw mongoError(31255, 'Cannot specify positional operator and $elemMatch.');
      this.hasElementMatch = true;
      this.tree.add(parseFieldPath(path).parts, elementMatchLeaf(path, argument, this.ctx));
    } else if (first === '$meta') this.meta(path, argument);
    else this.compute(path, value);
  }

  private meta(path: string, argument: unknown): void {
    if (typeof argument !== 'string') throw mongoError(31138, '$meta takes the name of the metadata');
    this.tree.add(parseFieldPath(path).parts, {
      kind: 'compute',
      evaluate: readMetadata(argument, this.ctx),
    });
  }

  private compute(path: string, value: unknown): void {
    const { parts } = parseFieldPath(path);
    const expression = compileExpression(value, this.ctx);
    const leaf: ProjectionLeaf = { kind: 'compute', evaluate: (root) => expression.evaluate(root) };
    this.hasComputed = true;
    if (this.mode === 'exclusion')
      throw mongoError(31252, 'Cannot use an expression other than $meta in exclusion projection');
    this.tree.add(parts, leaf);
  }

  private positional(path: string): void {
    if (this.positionalPath !== undefined)
      throw mongoError(31276, 'Cannot specify more than one positional projection per query.');
    if (this.hasElementMatch) throw mongoError(31256, 'Cannot specify positional operator and $elemMatch.');
    this.positionalPath = path;
    this.decide('inclusion', path);
    this.tree.add(parseFieldPath(path).parts, { kind: 'include' });
  }

  private decide(mode: Mode, path: string): void {
    // A projection of nothing but computed fields is an inclusion already.
    const current = this.mode ?? (this.hasComputed && mode === 'exclusion' ? 'inclusion' : undefined);
    if (current && current !== mode)
      throw current === 'inclusion'
        ? mongoError(31254, `Cannot do exclusion on field ${path} in inclusion projection`)
        : mongoError(31253, `Cannot do inclusion on field ${path} in exclusion projection`);
    this.mode = mode;
  }
}

const inclusionFlag = (value: unknown): boolean | undefined =>
  typeof value === 'boolean' || numberKind(value) !== undefined ? truthy(value) : undefined;

/** `{$slice: ["$a", 2]}` is the expression, `{$slice: [1, 2]}` the projection operator. */
const expressionSlice = (argument: unknown): boolean =>
  Array.isArray(argument) && argument.some((one) => numberKind(one) === undefined);
