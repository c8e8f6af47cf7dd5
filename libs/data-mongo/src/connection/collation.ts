/**
 * For every operation that compares values of rows: two texts are equal where they are the same text, as the rules of a policy read
 * them. Without it the default collation of a collection decides, and in a pipeline that of its first collection, for its joins as
 * well: a tenant `acme` would read rows of `ACME` (docs/guide/plain-mongodb.md).
 */
export const SIMPLE_COLLATION = { collation: { locale: 'simple' } } as const;
