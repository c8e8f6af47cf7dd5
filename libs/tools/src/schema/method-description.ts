import { type Tier, tierCovers } from '#agent';
import type { DeclaredMethod } from '../declared-methods.js';
import { hardenDescriptions, hardenSchemaText, type SchemaTextOptions } from '../shaping/schema-text.js';

export interface MethodContext {
  readonly tier: Tier;
  readonly text: SchemaTextOptions;
  /** Also tell which keys a method may write. */
  readonly showPermittedKeys: boolean;
}

/** The methods an agent of a tier could call, as get_schema tells of them. */
export function describeMethods(methods: readonly DeclaredMethod[], context: MethodContext) {
  return methods
    .filter(({ permission }) => tierCovers(context.tier, permission))
    .map(({ name, type, permission, description, supportsDryRun, parameters, permittedKeys }) => ({
      name,
      type,
      permission,
      ...(description && { description: hardenSchemaText(description, context.text) }),
      ...(supportsDryRun && { supports_dry_run: true }),
      ...(parameters && { parameters: hardenDescriptions(parameters, context.text) }),
      ...(context.showPermittedKeys && permittedKeys && { permitted_keys: permittedKeys }),
    }));
}
