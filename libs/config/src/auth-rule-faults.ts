import { parseKeyHash, TrustedNetworks } from '#auth';
import type { ConfigFault } from './config-faults.js';
import { noAgent } from './errors/no-agent.js';
import { oauthFaults } from './oauth-faults.js';
import { isSection, type Section } from './section.js';

const KINDS = ['apiKey', 'apiKeyHash', 'anonymous', 'parseSession', 'clientCertificate', 'oauth'] as const;

/**
 * What a schema cannot say of `auth`: each rule is of one kind and names agents that exist. Reads whatever shape the
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
    const path = `auth.${index}`;
    const { agent } = rule;
    if (typeof agent === 'string' && !names.has(agent))
      faults.push({ path: `${path}.agent`, ...noAgent(agent, names) });
    if (KINDS.filter((kind) => kind in rule).length !== 1)
      faults.push({ path, message: `exactly one of ${KINDS.join(', ')} is needed` });
    faults.push(...valueFaults(rule, path));
  }
  return [...faults, ...oauthFaults(config, names)];
}

/** Texts that a part of the service reads itself. */
function valueFaults({ apiKeyHash, clientCertificate }: Section, path: string): ConfigFault[] {
  const read = (at: string, reading: () => unknown): ConfigFault[] => {
    try {
      reading();
      return [];
    } catch (error) {
      return [{ path: `${path}.${at}`, message: (error as Error).message }];
    }
  };
  const proxies = isSection(clientCertificate) ? clientCertificate['trustedProxies'] : undefined;
  return [
    ...(typeof apiKeyHash === 'string' ? read('apiKeyHash', () => parseKeyHash(apiKeyHash)) : []),
    ...(Array.isArray(proxies) && proxies.every((entry) => typeof entry === 'string')
      ? read('clientCertificate.trustedProxies', () => new TrustedNetworks(proxies))
      : []),
  ];
}
