export { compileReader, type Given, listNames, listUndeclaredNames } from './class-reader.js';
export { compileClass, findUnreadDates, Keywords, Nullable } from './class-schema.js';
export { compileJsonSchema, type JsonSchemaCheck } from './json-schema-check.js';
export {
  Alias,
  ArgumentSchema,
  AsGiven,
  Convert,
  type DecoratedClass,
  getAliases,
  type JsonSchema,
  Undeclared,
} from './property.decorators.js';
export { nearKey, type SchemaFinding, schemaErrors } from './schema-errors.js';
export { acceptsType, type SchemaNode } from './schema-node.js';
