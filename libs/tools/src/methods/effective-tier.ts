import { canonicalClassName, type Tier } from '#agent';
import type { CallableMethods } from '../declared-methods.js';

/**
 * The tier a call really acts at: that of the target method for call_method (readonly while it is unresolved), the tool's
 * own otherwise.
 */
export function effectiveTier(
  tool: { readonly name: string; readonly permission: Tier },
  args: unknown,
  methods: CallableMethods,
): Tier {
  if (tool.name !== 'call_method') return tool.permission;
  const { class_name: className, method_name: name } = (args ?? {}) as Record<string, unknown>;
  if (typeof className !== 'string' || typeof name !== 'string') return 'readonly';
  return methods.find(canonicalClassName(className), name)?.permission ?? 'readonly';
}
