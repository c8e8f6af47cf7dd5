import type { GovernedClass } from '#data';

export interface RelationEdge {
  readonly from: string;
  readonly to: string;
  /** `Class.field` of the reference field. */
  readonly via: string;
  readonly cardinality: '1:N' | 'N:M';
}

export interface ClassRelations {
  readonly outgoing: readonly RelationEdge[];
  readonly incoming: readonly RelationEdge[];
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const PEOPLE = new Set(['_User', '_Role']);

/** The visible classes when any is declared visible, else all except system classes. */
function keepDrawn(classes: readonly GovernedClass[]): readonly GovernedClass[] {
  const visible = classes.filter(({ policy }) => policy.visible);
  if (visible.length > 0) return visible;
  return classes.filter(({ className }) => !className.startsWith('_') || PEOPLE.has(className));
}

function edge(holder: string, field: string, type: string, target: string): RelationEdge | null {
  const via = `${holder}.${field}`;
  if (type === 'Pointer') return { from: target, to: holder, via, cardinality: '1:N' };
  if (type === 'Relation') return { from: holder, to: target, via, cardinality: 'N:M' };
  return null;
}

/**
 * The references between the classes that an agent may read. The input contains only readable classes and fields, so
 * both ends and the field are readable.
 * @param subset only edges with both ends among these classes
 */
export function relationEdges(
  classes: readonly GovernedClass[],
  subset?: ReadonlySet<string>,
): readonly RelationEdge[] {
  const nodes = keepDrawn(classes).filter(({ className }) => subset?.has(className) ?? true);
  const names = new Set(nodes.map(({ className }) => className));
  return nodes.flatMap(({ className, schema, fields }) =>
    fields.flatMap((field) => {
      const { type = '', targetClass } = schema.fields.get(field) ?? {};
      if (targetClass === undefined || !names.has(targetClass)) return [];
      if (![className, field, targetClass].every((name) => IDENTIFIER.test(name))) return [];
      return edge(className, field, type, targetClass) ?? [];
    }),
  );
}

export function listRelations(className: string, edges: readonly RelationEdge[]): ClassRelations {
  return {
    outgoing: edges.filter(({ from }) => from === className),
    incoming: edges.filter(({ to }) => to === className),
  };
}
