import type { DeclaredMethod } from '../declared-methods.js';
import { hardenDescriptions, hardenSchemaText, type SchemaTextOptions } from '../shaping/schema-text.js';

export interface MethodContext {
  readonly text: SchemaTextOptions;
  /** Also tell which keys a method may write. */
  readonly showPermittedKeys: boolean;
}

/** Methods that the agent may call, as get_schema tells of them. */
export function describeMethods(methods: readonly DeclaredMethod[], context: MethodContext) {
  return methods.map(
    ({ name, type, permission, description, supportsDryRun, parameters, permittedKeys }) => ({
      name,
      type,
      permission,
      ...(description && { description: hardenSchemaText(description, context.text) }),
      ...(supportsDryRun && { supports_dry_run: true }),
      ...(parameters && { parameters: hardenDescriptions(parameters, context.text) }),
      ...(context.showPermittedKeys && permittedKeys && { permitted_keys: permittedKeys }),
    }),
  );
}
