import type { ConfigFault } from './config-faults.js';
import { isSection } from './section.js';

/** Options whose part of the service does not exist yet: setting one is a fault, because ignoring it would be a silent lie. */
export function unavailableFeatures(config: unknown): ConfigFault[] {
  if (!isSection(config)) return [];
  const faults: ConfigFault[] = [];
  const agents = isSection(config['agents']) ? config['agents'] : {};
  for (const [name, agent] of Object.entries(agents)) {
    if (!isSection(agent)) continue;
    if (isSection(agent['tenantId'])) {
      faults.push({
        path: `agents.${name}.tenantId`,
        message: 'tenants from token claims are not part of this version',
      });
    }
  }
  const rules = Array.isArray(config['auth']) ? (config['auth'] as unknown[]) : [];
  for (const [index, rule] of rules.entries()) {
    if (isSection(rule) && 'oauth' in rule) {
      faults.push({ path: `auth.${index}.oauth`, message: 'oauth is not part of this version' });
    }
  }
  return faults;
}
