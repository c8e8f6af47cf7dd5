import { isAllowedEndpoint, isSafeTransport } from '#embeddings';
import type { ConfigFault } from './config-faults.js';
import { isSection } from './section.js';

/** Where texts of agents may be sent: one place, encrypted on the way, and among those the operator allows. */
export function embeddingFaults(config: unknown): ConfigFault[] {
  const embeddings = isSection(config) ? config['embeddings'] : undefined;
  if (!isSection(config) || !isSection(embeddings)) return [];
  const { endpoint } = embeddings;
  if (typeof endpoint !== 'string') return [];
  const path = 'embeddings.endpoint';
  if (!isSafeTransport(endpoint))
    return [{ path, message: 'must be an https URL without credentials, or http on this machine' }];
  const llm = config['llm'];
  const allowed = isSection(llm) ? llm['allowedEndpoints'] : undefined;
  if (!Array.isArray(allowed)) return [];
  const names = allowed.filter((entry) => typeof entry === 'string');
  return isAllowedEndpoint(endpoint, names)
    ? []
    : [{ path, message: 'is not among llm.allowedEndpoints', related: ['llm.allowedEndpoints'] }];
}
