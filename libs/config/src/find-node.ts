import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Pair } from 'yaml';

/**
 * The part of a document that a dotted path is about: the key of an option or the entry of a list, or the last one above
 * that there is. Null: not even its first name is there. A name may have dots itself.
 */
export function findNode(document: Document, path: string): Node | null {
  let found: Node | null = null;
  let below: unknown = document.contents;
  let rest = path;
  while (rest !== '') {
    if (isAlias(below)) below = below.resolve(document);
    const step = isMap(below)
      ? stepIntoMap(below.items, rest)
      : isSeq(below)
        ? stepIntoList(below.items, rest)
        : null;
    if (!step) return found;
    found = step.at;
    below = step.below;
    rest = rest.slice(step.name.length + 1);
  }
  return found;
}

interface Step {
  readonly at: Node;
  readonly below: unknown;
  readonly name: string;
}

function stepIntoMap(pairs: readonly Pair[], path: string): Step | null {
  const steps = pairs.flatMap(({ key, value }): Step[] => {
    if (!isScalar(key)) return [];
    const name = String(key.value);
    return path === name || path.startsWith(`${name}.`) ? [{ at: key, below: value, name }] : [];
  });
  return steps.reduce<Step | null>(
    (longest, step) => (longest && longest.name.length >= step.name.length ? longest : step),
    null,
  );
}

function stepIntoList(items: readonly unknown[], path: string): Step | null {
  const name = path.split('.', 1)[0] ?? '';
  const item = /^\d+$/.test(name) ? items[Number(name)] : undefined;
  return item === undefined ? null : { at: item as Node, below: item, name };
}
