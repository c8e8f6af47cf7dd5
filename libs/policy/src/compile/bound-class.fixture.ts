import { compileClass } from './compile-class.js';
import type { ClassConfig } from './policy-config.js';
import type { ClassPolicy } from '../model/policy.js';
import type { ClassSchema, FieldSchema, FieldType, SchemaSnapshot } from '../model/class-schema.js';
import { bindClass } from './bind-class.js';

/** A class with the fields that every class has, and these text fields. */
export function createSchema(className: string, ...names: readonly string[]): ClassSchema {
  const built: readonly (readonly [string, FieldType])[] = [
    ['objectId', 'String'],
    ['createdAt', 'Date'],
    ['updatedAt', 'Date'],
    ['ACL', 'ACL'],
  ];
  return {
    className,
    fields: new Map<string, FieldSchema>([
      ...names.map((name) => [name, { type: 'String' }] as const),
      ...built.map(([name, type]) => [name, { type }] as const),
    ]),
    indexes: [],
    classLevelPermissions: null,
  };
}

export function createSchemas(...schemas: readonly ClassSchema[]): SchemaSnapshot {
  return {
    get: (name) => schemas.find(({ className }) => className === name),
    classNames: () => schemas.map(({ className }) => className).sort(),
  };
}

/** A declared class bound to a schema, or bound without one. */
export function createBoundClass(className: string, config: ClassConfig, schema?: ClassSchema): ClassPolicy {
  const schemas = createSchemas(...(schema ? [schema] : []));
  return bindClass(compileClass(className, config), { classes: new Map(), schemas }).policy;
}
