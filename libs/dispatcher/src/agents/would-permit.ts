import { type Agent, canonicalClassName, type Refusal } from '#agent';
import type { GovernedRecordsSource } from '#data';
import {
  type ClassOperation,
  type EnvironmentGates,
  envGate,
  isRefusal,
  methodGate,
  toolGate,
} from '#policy';
import type { CallableMethods, ToolRegistry } from '#tools';

/** What is asked about; left out parts are not judged. */
export interface PermitQuestion {
  /** The class that the call would name. */
  readonly class_name?: string;
  /** What is done with the class, as class-level permissions call it; without it they are not consulted. */
  readonly op?: ClassOperation;
  /** For `call_method`. */
  readonly method_name?: string;
}

/** Whether a call would pass, or why not and at which gate. */
export type PermitAnswer =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly reason: string; readonly denied_at: PermitGate };

type PermitGate =
  | 'allowed_tools'
  | 'write_env_gate'
  | 'schema_env_gate'
  | 'master_atlas_gate'
  | 'assert_class_accessible!'
  | 'method_filtered';

export interface PermitParts {
  readonly registry: ToolRegistry;
  readonly methods: CallableMethods;
  readonly gates: EnvironmentGates;
  readonly records: GovernedRecordsSource;
}

const denied = (reason: string, denied_at: PermitGate): PermitAnswer => ({
  allowed: false,
  reason,
  denied_at,
});

const SCHEMA_GATES = /PARSE_AGENT_ALLOW_(SCHEMA_OPS|RAW_SCHEMA)/;

function environmentDenial(refusal: Refusal): PermitAnswer {
  return SCHEMA_GATES.test(refusal.message)
    ? denied('schema_env_gate_disabled', 'schema_env_gate')
    : denied('write_env_gate_disabled', 'write_env_gate');
}

/** Asks the gates of a call, in their order, without making the call: nothing is spent, recorded or read but the schema. */
export async function wouldPermit(
  { registry, methods, gates, records }: PermitParts,
  agent: Agent,
  tool: string,
  question: PermitQuestion,
): Promise<PermitAnswer> {
  const definition = registry.get(tool)?.definition;
  if (toolGate(agent, tool, definition, () => [])) return denied('tool_filtered', 'allowed_tools');
  const shut = envGate(agent, tool, gates, definition);
  if (shut) return environmentDenial(shut);
  if (tool === 'atlas_faceted_search' && !agent.shape.masterAtlas)
    return denied('master_atlas_required', 'master_atlas_gate');
  if (question.class_name !== undefined && question.class_name !== '') {
    const scope = await records.scopeOf(agent);
    const entered = scope.enter(agent, question.class_name, question.op ?? null);
    if (isRefusal(entered)) return denied(entered.details?.kind ?? entered.code, 'assert_class_accessible!');
  }
  return methodDenial({ methods, gates }, agent, tool, question) ?? { allowed: true };
}

function methodDenial(
  { methods, gates }: Pick<PermitParts, 'methods' | 'gates'>,
  agent: Agent,
  tool: string,
  { class_name, method_name }: PermitQuestion,
): PermitAnswer | null {
  if (tool !== 'call_method' || class_name === undefined || method_name === undefined) return null;
  const className = canonicalClassName(class_name);
  const method = methods.find(className, method_name);
  if (!method) return denied('method_filtered', 'method_filtered');
  const refusal = methodGate(agent, { className, name: method_name, permission: method.permission }, gates);
  if (!refusal) return null;
  return refusal.gate === 'env_gates'
    ? environmentDenial(refusal)
    : denied('method_filtered', 'method_filtered');
}
