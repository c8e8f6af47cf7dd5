import { canonicalClassName, type Tier } from '#agent';
import type { CallableMethod, CallableMethods } from '../declared-methods.js';

/** The declared method that arguments of call_method name, with the canonical name of its class. */
export function calledMethod(
  args: unknown,
  methods: CallableMethods,
): (CallableMethod & { readonly className: string }) | undefined {
  const { class_name: written, method_name: name } = (args ?? {}) as Record<string, unknown>;
  if (typeof written !== 'string' || typeof name !== 'string') return undefined;
  const className = canonicalClassName(written);
  const method = methods.find(className, name);
  return method && { ...method, className };
}

/** Whether arguments of call_method ask what would be done. In doubt nothing is changed: all but absent, null and false does. */
export function asksForPreview(args: unknown): boolean {
  const { arguments: given } = (args ?? {}) as Record<string, unknown>;
  const { dry_run: asked } = (given ?? {}) as Record<string, unknown>;
  return asked !== undefined && asked !== null && asked !== false;
}

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
  return calledMethod(args, methods)?.permission ?? 'readonly';
}
