import { type Document, firstKey, getField, isDocument, setField } from '../../bson/document.js';
import { parseFieldPath } from '../../bson/path.js';
import { printValue } from '../../bson/text.js';
import { typeName } from '../../bson/type-name.js';
import { mongoError } from '../../errors.js';
import { applyTree, ProjectionNode } from '../../projection/projection-tree.js';
import { compileProjection } from '../../projection/projection.js';
import { refuseOthers } from '../arguments.js';
import { compileExpression } from '../expression.js';
import { expandDocuments, mapDocuments, type StageCompiler, type StageTable } from '../stage.js';
import { extendVariables } from '../evaluate.js';

const project: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(15969, '$project specification must be an object');
  if (firstKey(spec) === undefined) throw mongoError(51272, '$project must have at least one field');
  return mapDocuments(ctx, compileProjection(spec, ctx, undefined, 'aggregate'));
};

const addFields: StageCompiler = (spec, { ctx }, name) => {
  if (!isDocument(spec))
    throw mongoError(40272, `${name} specification stage must be an object, got ${typeName(spec)}`);
  const tree = new ProjectionNode();
  const add = (path: string, value: unknown): void => {
    const first = isDocument(value) ? firstKey(value) : undefined;
    if (isDocument(value) && first !== undefined && !first.startsWith('$')) {
      for (const key of Object.keys(value)) {
        if (key.includes('.')) throw mongoError(40183, `${name} has a dotted name within an object: ${key}`);
        add(`${path}.${key}`, value[key]);
      }
      return;
    }
    const expression = compileExpression(value, ctx);
    tree.add(parseFieldPath(path).parts, { kind: 'compute', evaluate: (root) => expression.evaluate(root) });
  };
  for (const path of Object.keys(spec)) add(path, getField(spec, path));
  return mapDocuments(ctx, (doc) => applyTree(doc, tree, 'keep', doc));
};

const unset: StageCompiler = (spec, { ctx }) => {
  const paths: unknown[] = Array.isArray(spec) ? spec : [spec];
  if (paths.length === 0)
    throw mongoError(31119, '$unset specification must be a string or an array with at least one field');
  const tree = new ProjectionNode();
  for (const path of paths) {
    if (typeof path !== 'string')
      throw mongoError(31002, '$unset specification must be a string or an array of strings');
    tree.add(parseFieldPath(path).parts, { kind: 'exclude' });
  }
  return mapDocuments(ctx, (doc) => applyTree(doc, tree, 'keep', doc));
};

const replaceRoot: StageCompiler = (spec, { ctx }, name) => {
  let newRoot = spec;
  if (name === '$replaceRoot') {
    if (!isDocument(spec))
      throw mongoError(40229, 'expected an object as specification for $replaceRoot stage');
    if (!Object.hasOwn(spec, 'newRoot'))
      throw mongoError(40231, 'no newRoot specified for the $replaceRoot stage');
    refuseOthers(spec, ['newRoot'], name, 40415);
    newRoot = spec['newRoot'];
  }
  const expression = compileExpression(newRoot, ctx);
  return mapDocuments(ctx, (doc) => {
    const root = expression.evaluate(doc);
    if (isDocument(root)) return root;
    throw mongoError(40228, `'newRoot' must be an object, not ${printValue(root)}`);
  });
};

const prune = Symbol('prune');
const keep = Symbol('keep');
const descend = Symbol('descend');

const redact: StageCompiler = (spec, { ctx }) => {
  const variables = extendVariables(ctx.variables, { PRUNE: prune, KEEP: keep, DESCEND: descend });
  const expression = compileExpression(spec, { ...ctx, variables });
  const level = (current: Document, root: Document): Document | undefined => {
    ctx.tick();
    const verdict = expression.evaluate(root, current);
    if (verdict === keep) return current;
    if (verdict === prune) return undefined;
    if (verdict !== descend)
      throw mongoError(17053, `$redact takes $$KEEP, $$DESCEND or $$PRUNE, not ${printValue(verdict)}`);
    const result: Document = {};
    for (const key of Object.keys(current)) {
      const value = inside(current[key], root);
      if (value !== undefined) setField(result, key, value);
    }
    return result;
  };
  const inside = (value: unknown, root: Document): unknown => {
    if (isDocument(value)) return level(value, root);
    if (!Array.isArray(value)) return value;
    return value.map((item) => inside(item, root)).filter((item) => item !== undefined);
  };
  return expandDocuments(ctx, (doc) => {
    const result = level(doc, doc);
    return result ? [result] : [];
  });
};

/** Stages that give each document another shape. */
export const fieldStages: StageTable = {
  $project: project,
  $addFields: addFields,
  $set: addFields,
  $unset: unset,
  $replaceRoot: replaceRoot,
  $replaceWith: replaceRoot,
  $redact: redact,
};
