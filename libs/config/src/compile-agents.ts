import { type AgentShape, type AgentShapeOptions, canonicalClassName, compileAgentShape } from '#agent';
import { agentMeaningErrors } from './errors/agent-options.js';
import { withoutIdentity } from './agent-identity.js';
import type { AgentConfig } from './agent-config.js';
import type { ConfigFault } from './config-faults.js';

type Filters = NonNullable<AgentShapeOptions['filters']>;

/** Row filters that the application's code gives to named agents, functions of the agent among them. */
export type DeclaredFilters = Readonly<Record<string, Filters>>;

export interface AgentDeclarations {
  /** Of agents that do not say how deep their sub-agents may go. */
  readonly recursionDepth: number;
  readonly filters: DeclaredFilters;
}

/** @param faults what could not be meant is added here */
export function compileAgents(
  agents: Readonly<Record<string, AgentConfig>>,
  { recursionDepth, filters: declared }: AgentDeclarations,
  faults: ConfigFault[],
): Map<string, AgentShape> {
  for (const name of Object.keys(declared)) {
    if (!Object.hasOwn(agents, name))
      faults.push({
        path: `agents.${name}`,
        message: 'filters are declared for it, but there is no such agent',
        related: ['agents.*'],
      });
  }
  const shapes = new Map<string, AgentShape>();
  for (const [name, agent] of Object.entries(agents)) {
    const { tenantId, llm: _llm, ...options } = withoutIdentity(agent);
    const filters = allFilters(name, options.filters ?? {}, declared[name] ?? {}, faults);
    const tenant = typeof tenantId === 'object' ? {} : { tenantId: tenantId ?? null };
    const shape = { recursionDepth, ...options, ...tenant, filters };
    const meant = agentMeaningErrors(shape, `agents.${name}`);
    faults.push(...meant);
    shapes.set(name, compileAgentShape(name, meant.length === 0 ? shape : namesOf(shape)));
  }
  return shapes;
}

/** The names of an agent that cannot be served, so that those that nothing has are told with its other errors. */
function namesOf({
  tools,
  classes,
  strictToolFilter,
  strictClassFilter,
}: AgentShapeOptions): AgentShapeOptions {
  return {
    ...(tools !== undefined && { tools }),
    ...(classes !== undefined && { classes }),
    ...(strictToolFilter !== undefined && { strictToolFilter }),
    ...(strictClassFilter !== undefined && { strictClassFilter }),
  };
}

/** The file's and the code's: a class stands in one of them, so that neither can loosen the other. */
function allFilters(agent: string, file: Filters, code: Filters, faults: ConfigFault[]): Filters {
  const inFile = new Set(Object.keys(file).map(canonicalClassName));
  for (const className of Object.keys(code)) {
    if (inFile.has(canonicalClassName(className)))
      faults.push({ path: `agents.${agent}.filters.${className}`, message: 'is declared in code as well' });
  }
  return { ...file, ...code };
}
