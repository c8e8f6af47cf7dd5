import type { ConfigFault } from '../config-faults.js';
import { nearKey } from './near-key.js';

/** What is said of the name of an agent that there is none of. */
export function noAgent(
  name: string,
  agents: Readonly<Record<string, unknown>> | ReadonlySet<string>,
): Pick<ConfigFault, 'message' | 'accepted' | 'related'> {
  const accepted = agents instanceof Set ? [...(agents as ReadonlySet<string>)] : Object.keys(agents);
  const near = nearKey(name, accepted);
  const meant = near === null ? `; there are: ${accepted.join(', ')}` : `; did you mean '${near}'?`;
  return { message: `no agent named '${name}'${meant}`, accepted, related: [`agents.${name}`] };
}
