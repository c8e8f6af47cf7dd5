import { isClassName } from '#agent';
import type { GovernedClass } from '#data';

/** One relation between two classes, read from left to right: one `from` has many `to`. */
export interface RelationEdge {
  readonly from: string;
  readonly to: string;
  /** `<owning class>.<field>`. */
  readonly via: string;
  readonly cardinality: '1:N' | 'N:M';
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const DRAWN_SYSTEM_CLASSES = new Set(['_User', '_Role']);
const NONE = '(no class relations defined)';

/** Where any class is declared visible only those are drawn; else all but Parse's internal ones. */
function candidates(classes: readonly GovernedClass[]): readonly GovernedClass[] {
  if (classes.some(({ policy }) => policy.visible)) return classes.filter(({ policy }) => policy.visible);
  return classes.filter(({ className }) => !className.startsWith('_') || DRAWN_SYSTEM_CLASSES.has(className));
}

function edgeOf(owner: GovernedClass, field: string): RelationEdge | null {
  const schema = owner.schema.fields.get(field);
  const target = schema?.targetClass;
  if (!target || !IDENTIFIER.test(field) || !isClassName(target)) return null;
  const via = `${owner.className}.${field}`;
  if (schema.type === 'Pointer') return { from: target, to: owner.className, via, cardinality: '1:N' };
  if (schema.type === 'Relation') return { from: owner.className, to: target, via, cardinality: 'N:M' };
  return null;
}

/**
 * The relations among classes this agent may know, over fields it may read. An edge is kept only when both its ends
 * are known to the agent, and in `subset` when one is given.
 */
export function relationEdges(
  classes: readonly GovernedClass[],
  subset?: ReadonlySet<string>,
): RelationEdge[] {
  const drawn = candidates(classes);
  const ends = new Set(
    drawn.map(({ className }) => className).filter((name) => subset === undefined || subset.has(name)),
  );
  const edges = new Map<string, RelationEdge>();
  for (const owner of drawn) {
    for (const field of owner.fields) {
      const edge = edgeOf(owner, field);
      if (!edge || !ends.has(edge.from) || !ends.has(edge.to)) continue;
      edges.set(`${edge.from} ${edge.to} ${edge.via}`, edge);
    }
  }
  return [...edges.values()];
}

/** One edge per line, columns aligned. */
export function drawRelations(edges: readonly RelationEdge[]): string {
  if (edges.length === 0) return NONE;
  const fromWidth = Math.max(...edges.map(({ from }) => from.length));
  const toWidth = Math.max(...edges.map(({ to }) => to.length));
  return edges
    .map(
      ({ from, to, via, cardinality }) =>
        `${from.padEnd(fromWidth)} ─${cardinality}→ ${to.padEnd(toWidth)}  (${via})`,
    )
    .join('\n');
}
