import { BUILT_IN_TOOLS } from '../built-in-tools.js';
import { toolDeclarations } from '../declaration/tool.decorator.js';
import type { ToolDefinition } from '../tool.js';

/** What an override may not change of the built-in it replaces. */
export type ToolGates = Pick<ToolDefinition, 'permission' | 'category' | 'clientSafe'>;

const rawMutation = (permission: 'write' | 'admin', clientSafe: boolean): ToolGates => ({
  permission,
  category: 'mutation',
  clientSafe,
});

// Object tools pass the client-mode ceiling because the `allowMutations` gate in front of it already decided.
const RAW_MUTATIONS: readonly (readonly [string, ToolGates])[] = [
  ['create_object', rawMutation('write', true)],
  ['update_object', rawMutation('write', true)],
  ['delete_object', rawMutation('admin', true)],
  ['create_class', rawMutation('admin', false)],
  ['delete_class', rawMutation('admin', false)],
];

/** Built-in names in catalogue order with their gates. Raw mutation names are reserved whether or not they are in place. */
export const BUILT_IN_GATES: ReadonlyMap<string, ToolGates> = new Map([
  ...BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
    ({ definition: { name, permission, category, clientSafe } }): [string, ToolGates] => [
      name,
      { permission, category, clientSafe },
    ],
  ),
  ...RAW_MUTATIONS,
]);
