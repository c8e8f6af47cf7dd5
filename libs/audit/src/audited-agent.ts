import {
  type Agent,
  type AgentShape,
  assumedName,
  authType,
  type AuthType,
  type NameFilter,
  type Tier,
} from '#core';

/** The agent of a call and its limits. Names only, never a value of a filter. */
export interface AuditedAgent extends AuditedLimits {
  /** What kind of identity it has. */
  readonly auth_type: AuthType;
  /** Whether rights of users and roles did not apply. */
  readonly using_master_key: boolean;
  /** Its tier. */
  readonly permissions: Tier;
  /** Random: of the agent of this request. */
  readonly agent_id: string;
  /** 0 for the agent of a request. */
  readonly agent_depth: number;
  /** Of the configuration. */
  readonly agent_name: string;
  /** Who: the key of limits, sessions and tasks. Never a credential. */
  readonly principal: string;
  /** The user or role that the agent acts as without its being verified. */
  readonly identity?: string;
  /** What the operator calls whoever is behind the identity. */
  readonly impersonation_label?: string;
  /** The user whose session the operator, not the caller, chose. */
  readonly impersonated_user_id?: string;
  /** Of the agent that delegated. */
  readonly parent_agent_id?: string;
  /** Of the agent. */
  readonly tenant_id?: string | number;
}

/**
 * The lists of an agent's filters; a list is present when its filter is set. Those of a sub-agent include its
 * parents'.
 */
interface AuditedLimits {
  /** `classes.only` of the agent. */
  readonly classes_only?: readonly string[];
  /** `classes.except` of the agent. */
  readonly classes_except?: readonly string[];
  /** `tools.only` of the agent. */
  readonly tools_only?: readonly string[];
  /** `tools.except` of the agent. */
  readonly tools_except?: readonly string[];
  /** `methods.only` of the agent. */
  readonly methods_only?: readonly string[];
  /** `methods.except` of the agent. */
  readonly methods_except?: readonly string[];
  /** Class, or `default`, to the names of the constrained fields. */
  readonly filters?: Readonly<Record<string, readonly string[]>>;
}

/** Replaces the field names of a filter that is a function: they are known only per call. */
const ASKED_PER_CALL = '(function)';

const known = new WeakMap<AgentShape, AuditedLimits>();

export function auditedAgent(agent: Agent): AuditedAgent {
  const assumed = assumedName(agent.identity);
  return {
    auth_type: authType(agent.identity),
    using_master_key: agent.usesMasterKey,
    permissions: agent.permissions,
    agent_id: agent.agentId,
    agent_depth: agent.depth,
    agent_name: agent.shape.name,
    principal: agent.principal,
    ...(assumed !== null && { identity: assumed }),
    ...(agent.impersonationLabel !== null && { impersonation_label: agent.impersonationLabel }),
    ...(agent.impersonatedUserId !== null && { impersonated_user_id: agent.impersonatedUserId }),
    ...(agent.parent && { parent_agent_id: agent.parent.agentId }),
    ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
    ...auditedLimits(agent.shape),
  };
}

function auditedLimits(shape: AgentShape): AuditedLimits {
  let limits = known.get(shape);
  if (!limits) known.set(shape, (limits = Object.freeze(limitsOf(shape))));
  return limits;
}

function limitsOf(shape: AgentShape): AuditedLimits {
  const filters = filteredFields(shape);
  return {
    ...lists('classes', shape.classes),
    ...lists('tools', shape.tools),
    ...lists('methods', shape.methods),
    ...(filters && { filters }),
  };
}

function lists(option: string, { only, except }: NameFilter): Record<string, readonly string[]> {
  return {
    ...(only && { [`${option}_only`]: [...only].sort() }),
    ...(except && { [`${option}_except`]: [...except].sort() }),
  };
}

/** The fields that an agent's row filters constrain, by class; null without filters. */
export function filteredFields(shape: AgentShape): Readonly<Record<string, readonly string[]>> | null {
  const fields = new Map<string, Set<string>>();
  for (let level: AgentShape | null = shape; level; level = level.outer) {
    for (const [className, entry] of level.filters) {
      const names = fields.get(className) ?? new Set<string>();
      for (const name of typeof entry === 'function' ? [ASKED_PER_CALL] : Object.keys(entry)) names.add(name);
      fields.set(className, names);
    }
  }
  if (fields.size === 0) return null;
  const sorted = [...fields].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([className, names]) => [className, [...names].sort()]));
}
