import { type Agent, isSystemClassName, type Refusal, refusals, type Tier, tierCovers } from '#core';
import type { ClassAccess } from '../model/class-access.js';

/** The properties of a tool that its gates check. */
export interface GatedTool {
  readonly name: string;
  readonly permission: Tier;
  readonly clientSafe: boolean;
  /** What it does beyond reading. */
  readonly needs?: readonly string[];
}

const RAW_CRUD = new Set(['create_object', 'update_object', 'delete_object']);
/** What lists, shows, discards, submits and undoes the change sets of an agent whose writes are proposed. */
const CHANGE_SETS = new Set([
  'list_changes',
  'show_changes',
  'discard_changes',
  'refresh_changes',
  'submit_changes',
  'undo_changes',
]);
/** Those that find and take back writes which happened at once. */
const UNDO_TOOLS = new Set(['list_changes', 'show_changes', 'undo_changes']);
/** What changes rows by arguments alone. */
const RAW_WRITES = new Set([...RAW_CRUD, ...CHANGE_SETS]);
const RAW_SCHEMA = new Set(['create_class', 'delete_class']);

/** The four gates that only the process environment can open (docs/reference/configuration.md#environment-gates). */
export interface EnvironmentGates {
  /** Tools that change rows, including custom ones. Default false, as for all four. */
  readonly PARSE_AGENT_ALLOW_WRITE_TOOLS: boolean;
  /** Tools that create and delete classes, including custom ones. */
  readonly PARSE_AGENT_ALLOW_SCHEMA_OPS: boolean;
  /** `create_object`, `update_object` and `delete_object`, in addition to the first gate. */
  readonly PARSE_AGENT_ALLOW_RAW_CRUD: boolean;
  /** `create_class` and `delete_class`, in addition to the second gate. */
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
 * Whether this agent may use this tool: tool filter, client-mode mutation gate, client-mode ceiling, permission level, in that
 * order. Used for listing and for calling.
 */
export function toolGate(
  agent: Agent,
  name: string,
  tool: GatedTool | undefined,
  clientSafeNames: () => readonly string[],
): Refusal | null {
  const { definition } = agent;
  const tierPermits = tool !== undefined && tierCovers(definition.permissions, tool.permission);
  if (tierPermits && !definition.tools.permits(name)) return refusals.toolFiltered(name);
  if (definition.clientMode && RAW_WRITES.has(name) && !definition.allowMutations)
    return refusals.mutationsNotAllowed(name);
  if (definition.clientMode && tool && !tool.clientSafe && !RAW_WRITES.has(name))
    return refusals.notClientSafe(name, clientSafeNames());
  if (!tierPermits) return refusals.tierTooLow(name, tool?.permission ?? 'unknown', definition.permissions);
  const hasSets = definition.writes === 'proposed' || (definition.undoesWrites && UNDO_TOOLS.has(name));
  if (CHANGE_SETS.has(name) && !hasSets) return refusals.writesAreDirect(name);
  const writes = tool.needs?.some((need) => need in GATES_OF_NEEDS) ?? false;
  return writes && !RAW_CRUD.has(name) ? directWriteGate(agent, `Tool '${name}'`) : null;
}

/** Whether a write happens when it is called: not where the writes of the agent are proposed. */
export function directWriteGate({ definition }: Agent, what = 'A write of its own'): Refusal | null {
  return definition.writes === 'proposed' ? refusals.writesAreProposed(what) : null;
}

/** The tiers of the tools that write rows. */
const WRITE_TIERS = { create: 'write', update: 'write', delete: 'admin' } as const;

/** The gates of the tool by which an agent would make or propose a write itself, for a way to write that no tool is. */
export function rowWriteGate(
  agent: Agent,
  operation: keyof typeof WRITE_TIERS,
  gates: EnvironmentGates,
): Refusal | null {
  const name = `${operation}_object`;
  const tool = { name, permission: WRITE_TIERS[operation], clientSafe: false };
  return toolGate(agent, name, tool, () => []) ?? envGate(agent, name, gates);
}

/** Whether a call of this tool adds to the change set of the agent, and changes nothing by itself. */
export function isProposal({ definition }: Agent, tool: string): boolean {
  return definition.writes === 'proposed' && RAW_CRUD.has(tool);
}

/**
 * The environment gates of a tool: two for raw object and class tools (and `allowMutations` for the former), one for a custom tool
 * that declares that it writes. The refusal names only the missing ones.
 */
export function envGate(
  agent: Agent,
  name: string,
  gates: EnvironmentGates,
  tool?: Pick<GatedTool, 'needs'>,
): Refusal | null {
  const listMissing = (...needed: (keyof EnvironmentGates)[]) =>
    needed.filter((gate) => !gates[gate]).map((gate) => `${gate}=true`);
  if (RAW_WRITES.has(name)) {
    const open = listMissing('PARSE_AGENT_ALLOW_WRITE_TOOLS', 'PARSE_AGENT_ALLOW_RAW_CRUD');
    if (!agent.definition.allowMutations) open.push('allow_mutations: true (per-agent kwarg)');
    return open.length > 0 ? refusals.envGateClosed('Raw CRUD', name, open) : null;
  }
  if (RAW_SCHEMA.has(name)) {
    const open = listMissing('PARSE_AGENT_ALLOW_SCHEMA_OPS', 'PARSE_AGENT_ALLOW_RAW_SCHEMA');
    return open.length > 0 ? refusals.envGateClosed('Raw schema-mutating', name, open) : null;
  }
  if (!tool?.needs) return null;
  const open = tool.needs.flatMap((need) => listMissing(...(GATES_OF_NEEDS[need] ?? [])));
  return open.length > 0 ? refusals.writeGatesClosed(name, open) : null;
}

/** Whether both gates pass the tool: only such tools are listed. */
export function mayUse(agent: Agent, tool: GatedTool, gates: EnvironmentGates): boolean {
  const { name } = tool;
  return toolGate(agent, name, tool, () => []) === null && envGate(agent, name, gates, tool) === null;
}

/** Declared methods are gated by their permission level instead (`methodGate`). */
const GATES_OF_NEEDS: Readonly<Record<string, readonly (keyof EnvironmentGates)[]>> = {
  rows: ['PARSE_AGENT_ALLOW_WRITE_TOOLS'],
  classes: ['PARSE_AGENT_ALLOW_SCHEMA_OPS'],
};

/** The properties of a declared method that its gate checks. */
export interface GatedMethod {
  /** Canonical. */
  readonly className: string;
  readonly name: string;
  readonly permission: Tier;
}

/** Whether this agent may call this declared method: permission level, method filter, environment gates, in that order. */
export function methodGate(agent: Agent, method: GatedMethod, gates: EnvironmentGates): Refusal | null {
  const { className, name, permission } = method;
  const qualified = `${className}.${name}`;
  if (!tierCovers(agent.permissions, permission))
    return refusals.tierTooLow(qualified, permission, agent.permissions);
  // An entry may leave out the class, or the underscore of a system class; any match counts, for `except` too.
  const spellings = [name, qualified, ...(className.startsWith('_') ? [qualified.slice(1)] : [])];
  if (!agent.definition.methods.permitsAny(spellings)) return refusals.methodFiltered(qualified);
  const direct = permission === 'readonly' ? null : directWriteGate(agent, `Method '${qualified}'`);
  if (direct) return direct;
  if (permission === 'write' && !gates.PARSE_AGENT_ALLOW_WRITE_TOOLS)
    return refusals.methodEnvClosed('Write', qualified, 'PARSE_AGENT_ALLOW_WRITE_TOOLS');
  if (permission === 'admin' && !gates.PARSE_AGENT_ALLOW_SCHEMA_OPS)
    return refusals.methodEnvClosed('Admin', qualified, 'PARSE_AGENT_ALLOW_SCHEMA_OPS');
  return null;
}

/** Parse classes that an admin agent may write directly; the others hold rights, sessions and server state. */
const WRITABLE_SYSTEM_CLASSES = new Set(['_User', '_Installation']);

/** Only admin agents may write rows of a system class, and only of two of them. */
export function rawWriteGate(
  agent: Agent,
  { className, schema }: Pick<ClassAccess, 'className' | 'schema'>,
): Refusal | null {
  // A plain class may have the name of one of Parse's, and nothing else of it.
  if (!isSystemClassName(className) || schema?.storage === 'plain') return null;
  if (WRITABLE_SYSTEM_CLASSES.has(className) && agent.permissions === 'admin') return null;
  return refusals.accessDenied(
    'system_class',
    WRITABLE_SYSTEM_CLASSES.has(className)
      ? `System class '${className}' is written by admin agents only`
      : `System class '${className}' cannot be changed by raw writes`,
  );
}

/** Creating and deleting classes needs the master key, as in Parse; system classes cannot be changed. */
export function schemaChangeGate(agent: Agent, className: string): Refusal | null {
  if (isSystemClassName(className)) {
    return refusals.invalidArgument('class_name must not name a system class', 'system_class');
  }
  return agent.usesMasterKey ? null : refusals.classChangeDenied();
}
