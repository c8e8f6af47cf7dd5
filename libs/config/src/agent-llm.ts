import type { ParleyConfig } from './config.js';
import type { ConfigFault } from './config-faults.js';
import { type AgentLlmConfig, DEFAULT_LLM, type LlmConfig } from './model-config.js';
import { isSection } from './section.js';

/** An agent may have less of these than the installation, never more. */
const LIMITS = ['maxTokens', 'maxIterations', 'maxContextTokens', 'maxResultCharacters'] as const;

/** The settings of the model for one agent: its own over the installation's, and of every limit the lower one. */
export function llmOf({ llm, agents }: Pick<ParleyConfig, 'llm' | 'agents'>, agent: string): LlmConfig {
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

/** A limit above the installation's would not hold: it is told, not lowered in silence. */
export function agentLlmFaults(config: unknown): ConfigFault[] {
  if (!isSection(config) || !isSection(config['agents'])) return [];
  const whole = isSection(config['llm']) ? config['llm'] : {};
  return Object.entries(config['agents']).flatMap(([name, agent]) => {
    const own = isSection(agent) ? agent['llm'] : undefined;
    return isSection(own) ? LIMITS.flatMap((limit) => limitFault(name, limit, own, whole)) : [];
  });
}

function limitFault(
  agent: string,
  limit: (typeof LIMITS)[number],
  own: Readonly<Record<string, unknown>>,
  whole: Readonly<Record<string, unknown>>,
): ConfigFault[] {
  const asked = own[limit];
  const most = typeof whole[limit] === 'number' ? whole[limit] : DEFAULT_LLM[limit];
  if (typeof asked !== 'number' || asked <= most) return [];
  return [
    {
      path: `agents.${agent}.llm.${limit}`,
      message: `must not be above llm.${limit}, which is ${most}`,
      related: [`llm.${limit}`],
    },
  ];
}
