import { mongoError } from '../errors.js';

/** Refuses two modifiers that touch the same place: each path may be written once, and nothing below it. */
export class TouchedPaths {
  private readonly root: PathNode = { ends: false, children: new Map() };

  /** Errors: 40 when the path equals, contains or lies within one added before. */
  add(parts: readonly string[]): void {
    let node = this.root;
    for (const [i, part] of parts.entries()) {
      let next = node.children.get(part);
      if (!next) node.children.set(part, (next = { ends: false, children: new Map() }));
      node = next;
      if (node.ends) throw conflict(parts, i + 1);
    }
    if (node.children.size > 0) throw conflict(parts, parts.length);
    node.ends = true;
  }
}

interface PathNode {
  ends: boolean;
  readonly children: Map<string, PathNode>;
}

const conflict = (parts: readonly string[], length: number): Error =>
  mongoError(
    40,
    `Updating the path '${parts.join('.')}' would create a conflict at '${parts.slice(0, length).join('.')}'`,
  );
