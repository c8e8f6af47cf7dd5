import type { UnknownName } from '#policy';
import type { ConfigFault } from '../config-faults.js';

/** Names of nothing in the agents of a configuration: errors where names are strict, and warnings. */
export function nameFaults(names: readonly UnknownName[]): {
  readonly errors: readonly ConfigFault[];
  readonly warnings: readonly ConfigFault[];
} {
  const of = (strict: boolean) =>
    names
      .filter((name) => name.strict === strict)
      .map(({ agent, path, message, accepted }) => ({ path: `agents.${agent}.${path}`, message, accepted }));
  return { errors: of(true), warnings: of(false) };
}
