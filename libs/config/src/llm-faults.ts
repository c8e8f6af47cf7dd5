import { isAllowedEndpoint, isSafeTransport } from '#embeddings';
import type { ConfigFault } from './config-faults.js';
import { isSection } from './section.js';

/** Where conversations may be sent: a place that the operator listed, or else one that is encrypted or on this machine. */
export function llmFaults(config: unknown): ConfigFault[] {
  const llm = isSection(config) ? config['llm'] : undefined;
  if (!isSection(llm) || typeof llm['endpoint'] !== 'string') return [];
  const { endpoint, allowedEndpoints: allowed } = llm;
  const path = 'llm.endpoint';
  if (Array.isArray(allowed)) {
    const names = allowed.filter((entry) => typeof entry === 'string');
    return isAllowedEndpoint(endpoint, names)
      ? []
      : [{ path, message: 'is not among llm.allowedEndpoints', related: ['llm.allowedEndpoints'] }];
  }
  if (isSafeTransport(endpoint)) return [];
  return [{ path, message: 'must be an https URL without credentials, or http on this machine' }];
}
