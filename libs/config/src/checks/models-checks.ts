import { isAllowedEndpoint, isSafeTransport } from '#data';
import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import { readDefaults } from '../schema/class-schema.js';
import { type AgentLlmConfig, type LlmConfig, LlmSection } from '../sections/models.js';
import { isJsonObject, type JsonObject } from '#core';

/** An agent may have less of these than the installation, never more. */
const LIMITS = ['maxTokens', 'maxIterations', 'maxContextTokens'] as const;

/** The settings of the model for one agent: its own over the installation's, and of every limit the lower one. */
export function findLlm({ llm, agents }: Pick<ParleyConfig, 'llm' | 'agents'>, agent: string): LlmConfig {
  const own: AgentLlmConfig = (Object.hasOwn(agents, agent) ? agents[agent]?.llm : undefined) ?? {};
  const given = Object.entries(own).filter(([, value]) => value !== null && value !== undefined);
  const limits = LIMITS.map((name) => [name, Math.min(own[name] ?? Infinity, llm[name])] as const);
  return {
    ...llm,
    ...Object.fromEntries(given),
    ...Object.fromEntries(limits),
    prices: { ...llm.prices, ...own.prices },
  };
}

/** A limit above the installation's would not hold: it is an error, not lowered in silence. */
export function agentLlmErrors(config: unknown): ConfigIssue[] {
  if (!isJsonObject(config) || !isJsonObject(config['agents'])) return [];
  const whole = isJsonObject(config['llm']) ? config['llm'] : {};
  return Object.entries(config['agents']).flatMap(([name, agent]) => {
    const own = isJsonObject(agent) ? agent['llm'] : undefined;
    return isJsonObject(own) ? LIMITS.flatMap((limit) => limitErrors(name, limit, own, whole)) : [];
  });
}

function limitErrors(
  agent: string,
  limit: (typeof LIMITS)[number],
  own: Readonly<Record<string, unknown>>,
  whole: Readonly<Record<string, unknown>>,
): ConfigIssue[] {
  const wanted = own[limit];
  const most = typeof whole[limit] === 'number' ? whole[limit] : readDefaults(LlmSection)[limit];
  if (typeof wanted !== 'number' || wanted <= most) return [];
  return [
    {
      path: `agents.${agent}.llm.${limit}`,
      message: `must not be above llm.${limit}, which is ${most}`,
      related: [`llm.${limit}`],
    },
  ];
}

const UNSAFE_ENDPOINT = 'must be an https URL without credentials, or http on this machine';

/** Where conversations and texts of agents may be sent: encrypted or within this machine, and among what the operator lists. */
export function endpointErrors({ llm, embeddings }: JsonObject): ConfigIssue[] {
  const allowed = isJsonObject(llm) ? llm['allowedEndpoints'] : undefined;
  const names = Array.isArray(allowed) ? allowed.filter((entry) => typeof entry === 'string') : null;
  const notListed = (path: string) => ({
    path,
    message: 'is not among llm.allowedEndpoints',
    related: ['llm.allowedEndpoints'],
  });
  const errors: ConfigIssue[] = [];
  const texts = isJsonObject(embeddings) ? embeddings['endpoint'] : undefined;
  if (typeof texts === 'string') {
    const path = 'embeddings.endpoint';
    if (!isSafeTransport(texts)) errors.push({ path, message: UNSAFE_ENDPOINT });
    else if (names && !isAllowedEndpoint(texts, names)) errors.push(notListed(path));
  }
  const conversations = isJsonObject(llm) ? llm['endpoint'] : undefined;
  if (typeof conversations === 'string') {
    const path = 'llm.endpoint';
    // A place that the operator lists may also be one without encryption.
    if (names && !isAllowedEndpoint(conversations, names)) errors.push(notListed(path));
    if (!names && !isSafeTransport(conversations)) errors.push({ path, message: UNSAFE_ENDPOINT });
  }
  return errors;
}
