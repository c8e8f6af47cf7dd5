import { mongoError } from '../errors.js';
import { isDocument, setField, type Document } from '../bson/document.js';

/** What happens to one field of a projection. */
export type ProjectionLeaf =
  | { readonly kind: 'include' }
  | { readonly kind: 'exclude' }
  /** Replaces the value by a function of the whole document; undefined leaves the field out. */
  | { readonly kind: 'compute'; readonly evaluate: (root: Document) => unknown }
  /** Rewrites the value in place (`$slice`); the field keeps its position. */
  | { readonly kind: 'rewrite'; readonly rewrite: (value: unknown) => unknown };

/** A projection as a tree of fields. */
export class ProjectionNode {
  readonly children = new Map<string, ProjectionNode | ProjectionLeaf>();

  /** Adds a leaf at a path. Errors: 31249 below an existing leaf, 31250 at or above one. */
  add(parts: readonly string[], leaf: ProjectionLeaf): void {
    const path = parts.join('.');
    this.insert(parts, 0, leaf, path);
  }

  private insert(parts: readonly string[], depth: number, leaf: ProjectionLeaf, path: string): void {
    const part = parts[depth] as string;
    const existing = this.children.get(part);
    if (depth === parts.length - 1) {
      if (existing) throw mongoError(31250, `Path collision at ${path}`);
      this.children.set(part, leaf);
      return;
    }
    if (existing && !(existing instanceof ProjectionNode))
      throw mongoError(31249, `Path collision at ${path}, below ${part}`);
    const node = existing ?? new ProjectionNode();
    this.children.set(part, node);
    node.insert(parts, depth + 1, leaf, path);
  }
}

/** Whether fields that the tree does not name are kept. */
type Unnamed = 'keep' | 'drop';

/** Applies a tree: named fields in document order, then computed ones that are new, or beside which others are dropped. */
export function applyTree(value: Document, node: ProjectionNode, unnamed: Unnamed, root: Document): Document {
  const result: Document = {};
  for (const key of Object.keys(value)) {
    const child = node.children.get(key);
    if (unnamed === 'drop' && isComputed(child)) continue;
    const field = value[key];
    if (child === undefined) {
      if (unnamed === 'keep') setField(result, key, field);
      continue;
    }
    const projected = applyChild(field, child, unnamed, root);
    if (projected !== undefined) setField(result, key, projected);
  }
  for (const [key, child] of node.children) {
    if (Object.hasOwn(value, key) && (unnamed === 'keep' || !isComputed(child))) continue;
    const created = child instanceof ProjectionNode ? computeObject(child, root) : computeLeaf(child, root);
    if (created !== undefined) setField(result, key, created);
  }
  return result;
}

const isComputed = (child: ProjectionNode | ProjectionLeaf | undefined): boolean =>
  !(child instanceof ProjectionNode) && child?.kind === 'compute';

function applyChild(
  field: unknown,
  child: ProjectionNode | ProjectionLeaf,
  unnamed: Unnamed,
  root: Document,
): unknown {
  if (child instanceof ProjectionNode) return applyNested(field, child, unnamed, root);
  switch (child.kind) {
    case 'include':
      return field;
    case 'exclude':
      return undefined;
    case 'compute':
      return child.evaluate(root);
    case 'rewrite':
      return child.rewrite(field);
  }
}

/** Arrays are projected element by element; a scalar below a named path is dropped, or replaced when computed. */
function applyNested(field: unknown, node: ProjectionNode, unnamed: Unnamed, root: Document): unknown {
  if (isDocument(field)) return applyTree(field, node, unnamed, root);
  if (Array.isArray(field))
    return field.map((item) => applyNested(item, node, unnamed, root)).filter((item) => item !== undefined);
  const created = computeObject(node, root);
  if (created !== undefined) return created;
  return unnamed === 'keep' ? field : undefined;
}

function computeObject(node: ProjectionNode, root: Document): Document | undefined {
  if (!hasComputed(node)) return undefined;
  const result: Document = {};
  for (const [key, child] of node.children) {
    const value = child instanceof ProjectionNode ? computeObject(child, root) : computeLeaf(child, root);
    if (value !== undefined) setField(result, key, value);
  }
  return result;
}

const computeLeaf = (leaf: ProjectionLeaf, root: Document): unknown =>
  leaf.kind === 'compute' ? leaf.evaluate(root) : undefined;

function hasComputed(node: ProjectionNode): boolean {
  for (const child of node.children.values()) {
    if (child instanceof ProjectionNode ? hasComputed(child) : isComputed(child)) return true;
  }
  return false;
}
