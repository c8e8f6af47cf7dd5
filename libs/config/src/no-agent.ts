import { nearKey } from '#schema';
import type { ConfigIssue } from './config-error.js';

/** The error for the name of an agent that does not exist. */
export function noAgent(
  name: string,
  agents: Readonly<Record<string, unknown>> | ReadonlySet<string>,
): Pick<ConfigIssue, 'message' | 'accepted' | 'related'> {
  const accepted = agents instanceof Set ? [...(agents as ReadonlySet<string>)] : Object.keys(agents);
  const near = nearKey(name, accepted);
  const meant = near === null ? `; there are: ${accepted.join(', ')}` : `; did you mean '${near}'?`;
  return { message: `no agent named '${name}'${meant}`, accepted, related: [`agents.${name}`] };
}
