import { type Agent, type Refusal, refusals, tierCovers, type Tier } from '#agent';

/** What the tool gates need to know of a tool. */
export interface GatedTool {
  readonly name: string;
  readonly permission: Tier;
  readonly clientSafe: boolean;
  /** What it does beyond reading. */
  readonly needs?: readonly string[];
}

const RAW_CRUD = new Set(['create_object', 'update_object', 'delete_object']);
const RAW_SCHEMA = new Set(['create_class', 'delete_class']);

/** The four gates that only the process environment can open (docs/configuration.md#environment-gates). */
export interface EnvironmentGates {
  /** Tools that change rows, those of applications included. Default false, as of all. */
  readonly PARSE_AGENT_ALLOW_WRITE_TOOLS: boolean;
  /** Tools that make and remove classes, those of applications included. */
  readonly PARSE_AGENT_ALLOW_SCHEMA_OPS: boolean;
  /** `create_object`, `update_object` and `delete_object`, beside the first gate. */
  readonly PARSE_AGENT_ALLOW_RAW_CRUD: boolean;
  /** `create_class` and `delete_class`, beside the second gate. */
  readonly PARSE_AGENT_ALLOW_RAW_SCHEMA: boolean;
}

/** `1`, `true`, `yes`, `on` in any case; anything else is off. */
export function isTruthy(value: string | undefined): boolean {
  return value !== undefined && /^(1|true|yes|on)$/i.test(value);
}

export function readEnvironmentGates(env: Readonly<Record<string, string | undefined>>): EnvironmentGates {
  return Object.freeze({
    PARSE_AGENT_ALLOW_WRITE_TOOLS: isTruthy(env['PARSE_AGENT_ALLOW_WRITE_TOOLS']),
    PARSE_AGENT_ALLOW_SCHEMA_OPS: isTruthy(env['PARSE_AGENT_ALLOW_SCHEMA_OPS']),
    PARSE_AGENT_ALLOW_RAW_CRUD: isTruthy(env['PARSE_AGENT_ALLOW_RAW_CRUD']),
    PARSE_AGENT_ALLOW_RAW_SCHEMA: isTruthy(env['PARSE_AGENT_ALLOW_RAW_SCHEMA']),
  });
}

/**
 * May this agent use this tool at all: operator filter, client-mode mutation gate, client-mode ceiling, tier, in that order.
 * Listing and calling both ask here.
 */
export function toolGate(
  agent: Agent,
  name: string,
  tool: GatedTool | undefined,
  clientSafeNames: () => readonly string[],
): Refusal | null {
  const { shape } = agent;
  const tierPermits = tool !== undefined && tierCovers(shape.permissions, tool.permission);
  if (tierPermits && !shape.tools.permits(name)) return refusals.toolFiltered(name);
  if (shape.clientMode && RAW_CRUD.has(name) && !shape.allowMutations)
    return refusals.mutationsNotAllowed(name);
  if (shape.clientMode && tool && !tool.clientSafe && !RAW_CRUD.has(name))
    return refusals.notClientSafe(name, clientSafeNames());
  if (!tierPermits) return refusals.tierTooLow(name, tool?.permission ?? 'unknown', shape.permissions);
  return null;
}

/**
 * What the environment must open: a pair of gates for raw object and class tools (and `allowMutations` for the former),
 * one for an application's own tool that declares that it writes. Names only what is missing.
 */
export function envGate(
  agent: Agent,
  name: string,
  gates: EnvironmentGates,
  tool?: Pick<GatedTool, 'needs'>,
): Refusal | null {
  const missing = (...needed: (keyof EnvironmentGates)[]) =>
    needed.filter((gate) => !gates[gate]).map((gate) => `${gate}=true`);
  if (RAW_CRUD.has(name)) {
    const open = missing('PARSE_AGENT_ALLOW_WRITE_TOOLS', 'PARSE_AGENT_ALLOW_RAW_CRUD');
    if (!agent.shape.allowMutations) open.push('allow_mutations: true (per-agent kwarg)');
    return open.length > 0 ? refusals.envGateClosed('Raw CRUD', name, open) : null;
  }
  if (RAW_SCHEMA.has(name)) {
    const open = missing('PARSE_AGENT_ALLOW_SCHEMA_OPS', 'PARSE_AGENT_ALLOW_RAW_SCHEMA');
    return open.length > 0 ? refusals.envGateClosed('Raw schema-mutating', name, open) : null;
  }
  const open = (tool?.needs ?? []).flatMap((need) => missing(...(GATES_OF_NEEDS[need] ?? [])));
  return open.length > 0 ? refusals.writeGatesClosed(name, open) : null;
}

/** Whether both gates let the agent use the tool: what is listed. */
export function mayUse(agent: Agent, tool: GatedTool, gates: EnvironmentGates): boolean {
  const { name } = tool;
  return toolGate(agent, name, tool, () => []) === null && envGate(agent, name, gates, tool) === null;
}

/** Declared methods ask by their own tier instead. */
const GATES_OF_NEEDS: Readonly<Record<string, readonly (keyof EnvironmentGates)[]>> = {
  rows: ['PARSE_AGENT_ALLOW_WRITE_TOOLS'],
  classes: ['PARSE_AGENT_ALLOW_SCHEMA_OPS'],
};
