/** Where Parse keeps the pairs (`owningId`, `relatedId`) of a relation. */
export function joinCollection(className: string, field: string): string {
  return `_Join:${field}:${className}`;
}
