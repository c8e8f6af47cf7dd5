export { compileClass, type DecoratedClass, type JsonSchema, Keywords, Nullable } from './class-schema.js';
export { nearKey } from './near-key.js';
export { type SchemaFinding, schemaErrors } from './schema-errors.js';
export { acceptsType, type SchemaNode } from './schema-node.js';
