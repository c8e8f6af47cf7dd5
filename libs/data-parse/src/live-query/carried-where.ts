import type { ClassSchema, FieldSchema, Where } from '#policy';

const SCALARS: ReadonlySet<FieldSchema['type']> = new Set(['String', 'Number', 'Boolean']);

/**
 * Whether Parse LiveQuery judges a constraint as the database does. Its matcher is another one: it compares dates, lists,
 * geometry and missing values in its own way. Where it might differ, it does not count as carried.
 */
export function isCarried(where: Where, schema: ClassSchema | undefined): boolean {
  return Object.entries(where).every(([key, constraint]) => {
    if (key === '$and' || key === '$or') {
      return Array.isArray(constraint) && constraint.every((branch) => isCarried(branch as Where, schema));
    }
    const field = schema?.fields.get(key) ?? (key === 'objectId' ? ({ type: 'String' } as const) : undefined);
    return !key.startsWith('$') && field !== undefined && isCarriedConstraint(constraint, field);
  });
}

function isCarriedConstraint(constraint: unknown, field: FieldSchema): boolean {
  if (isScalar(constraint)) return SCALARS.has(field.type);
  if (typeof constraint !== 'object' || constraint === null) return false;
  if ('__type' in constraint) return constraint.__type === 'Pointer' && field.type === 'Pointer';
  if (!SCALARS.has(field.type)) return false;
  return Object.entries(constraint).every(([operator, operand]) => {
    switch (operator) {
      case '$eq':
      case '$ne':
        return isScalar(operand);
      case '$in':
      case '$nin':
        return Array.isArray(operand) && operand.every(isScalar);
      case '$exists':
        return typeof operand === 'boolean';
      default:
        return false;
    }
  });
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
