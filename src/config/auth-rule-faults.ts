import type { ConfigFault } from './config-faults.js';
import { isSection } from './section.js';

const KINDS = ['apiKey', 'anonymous', 'parseSession', 'oauth'] as const;

/**
 * What a schema cannot say of `auth`: each rule is of one kind and names an agent that exists. Reads whatever shape the
 * file has, so that these faults are listed together with those of the schema.
 * @param fallback the agent that exists when the file names none
 */
export function authRuleFaults(config: unknown, fallback: string): ConfigFault[] {
  if (!isSection(config) || !Array.isArray(config['auth'])) return [];
  const declared = isSection(config['agents']) ? Object.keys(config['agents']) : [];
  const names = new Set(declared.length > 0 ? declared : [fallback]);
  const faults: ConfigFault[] = [];
  for (const [index, rule] of (config['auth'] as unknown[]).entries()) {
    if (!isSection(rule)) continue;
    const { agent } = rule;
    if (typeof agent === 'string' && !names.has(agent))
      faults.push({ path: `auth.${index}.agent`, message: `no agent named '${agent}'` });
    if (KINDS.filter((kind) => kind in rule).length !== 1)
      faults.push({ path: `auth.${index}`, message: `exactly one of ${KINDS.join(', ')} is needed` });
  }
  return faults;
}
