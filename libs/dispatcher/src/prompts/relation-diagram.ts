import type { RelationEdge } from '#tools';

const NONE = '(no class relations defined)';

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
