import type { ConfigFault } from './config-faults.js';

const KINDS = ['apiKey', 'anonymous', 'parseSession', 'oauth'] as const;

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/**
 * What a schema cannot say of `auth`: each rule is of one kind and names an agent that exists. Reads whatever shape the
 * file has, so that these faults are listed together with those of the schema.
 * @param fallback the agent that exists when the file names none
 */
export function authRuleFaults(config: unknown, fallback: string): ConfigFault[] {
  if (!isObject(config) || !Array.isArray(config['auth'])) return [];
  const declared = isObject(config['agents']) ? Object.keys(config['agents']) : [];
  const names = new Set(declared.length > 0 ? declared : [fallback]);
  const faults: ConfigFault[] = [];
  for (const [index, rule] of (config['auth'] as unknown[]).entries()) {
    if (!isObject(rule)) continue;
    const { agent } = rule;
    if (typeof agent === 'string' && !names.has(agent))
      faults.push({ path: `auth.${index}.agent`, message: `no agent named '${agent}'` });
    if (needsSession(rule) && isSessionless(config['agents'], agent)) {
      const message = `agent '${String(agent)}' is in client mode, which needs identity: { session: caller }`;
      faults.push({ path: `auth.${index}.agent`, message });
    }
    if (KINDS.filter((kind) => kind in rule).length !== 1)
      faults.push({ path: `auth.${index}`, message: `exactly one of ${KINDS.join(', ')} is needed` });
  }
  return faults;
}

/** Rules that bring no session of their own. */
const needsSession = (rule: Record<string, unknown>): boolean => 'apiKey' in rule || 'anonymous' in rule;

/** A client without a master key that says no session reads nothing: every call would be refused. */
function isSessionless(agents: unknown, name: unknown): boolean {
  const agent = isObject(agents) && typeof name === 'string' ? agents[name] : undefined;
  return isObject(agent) && agent['clientMode'] === true && !isObject(agent['identity']);
}
