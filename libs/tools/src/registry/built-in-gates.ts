import { BUILT_IN_TOOLS } from '../built-in-tools.js';
import { toolDeclarations } from '../declaration/tool.decorator.js';
import type { ToolDefinition } from '../tool.js';

/** What an override may not change of the built-in it replaces. */
export type ToolGates = Pick<ToolDefinition, 'permission' | 'category' | 'clientSafe'>;

/** Whether Parley itself has a tool of that name, replaced or not. */
export const isBuiltInName = (name: string): boolean => BUILT_IN_GATES.has(name);

/** Built-in names in catalogue order with their gates. */
export const BUILT_IN_GATES: ReadonlyMap<string, ToolGates> = new Map(
  BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
    ({ definition: { name, permission, category, clientSafe } }): [string, ToolGates] => [
      name,
      { permission, category, clientSafe },
    ],
  ),
);
