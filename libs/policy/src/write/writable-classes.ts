import { type Agent, isSystemClassName, type Refusal, refusals } from '#agent';

/** Parse's own classes that an admin may write raw; the others keep rights, sessions and the server's own state. */
const WRITABLE_SYSTEM_CLASSES = new Set(['_User', '_Installation']);

/** Rows of a system class are changed by admins only, and of two classes only. */
export function rawWriteGate(agent: Agent, className: string): Refusal | null {
  if (!isSystemClassName(className)) return null;
  if (WRITABLE_SYSTEM_CLASSES.has(className) && agent.permissions === 'admin') return null;
  return refusals.accessDenied(
    'system_class',
    WRITABLE_SYSTEM_CLASSES.has(className)
      ? `System class '${className}' is written by admin agents only`
      : `System class '${className}' cannot be changed by raw writes`,
  );
}

/** Classes are made and removed under the master key, as in Parse; system classes never. */
export function schemaChangeGate(agent: Agent, className: string): Refusal | null {
  if (isSystemClassName(className)) {
    return refusals.invalidArgument('class_name must not name a system class', 'system_class');
  }
  if (agent.usesMasterKey) return null;
  return refusals.accessDenied(
    'class_permission',
    'Classes can only be made or removed by an agent in master posture',
    'unenforceable_scope',
  );
}
