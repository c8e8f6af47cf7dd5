import {
  Agent,
  type AgentOptions,
  type AgentDefinition,
  McpRequest,
  isMissingTenantRow,
  RateLimiter,
  type Refusal,
  isJsonObject,
  member,
} from '#core';
import type { ToolDefinition, ToolRunner } from '#tools';
import { type ApprovalDecision, type ApprovalRequest, Approver } from '../calls/approval.js';
import {
  GateTrace,
  type InjectedLimit,
  type MaskedField,
  type PassedGate,
  type RecordingStore,
  type StoreCommand,
} from './recording-store.js';

/** The outcome that a call would have, and the decisions behind it. */
export interface SimulatedCall {
  /** Its name. */
  readonly agent: string;
  /** Its name. */
  readonly tool: string;
  /** No gate refused. */
  readonly allowed: boolean;
  /** The call would request an approval before it runs. */
  readonly asksApproval: boolean;
  /** In the order of the checks. */
  readonly passed: readonly PassedGate[];
  /** Present when a gate refused. */
  readonly refusal?: Refusal;
  /** The row limits and the rules that require them. */
  readonly injected: readonly InjectedLimit[];
  /** Of the classes that the call uses. */
  readonly masked: readonly MaskedField[];
  /** The commands that would be sent to the database. A real answer to the first command could differ. */
  readonly commands: readonly StoreCommand[];
}

/** Runs calls through the pipeline and its governed records, up to the store and no further. One call at a time. */
export class Simulator {
  /** @param runner created over this `store` and `approver` */
  constructor(
    private readonly runner: ToolRunner,
    private readonly store: RecordingStore,
    private readonly approver: SimulatedApprover,
  ) {}

  async simulate(agent: Agent, tool: string, args: unknown): Promise<SimulatedCall> {
    const trace = new GateTrace();
    this.store.take();
    this.approver.take();
    const outcome = await this.runner.run(tool, args, new McpRequest(agent, undefined, { trace }));
    const commands = this.store.take();
    const refusal = outcome.ok || isForWantOfData(outcome.refusal, commands) ? undefined : outcome.refusal;
    return {
      agent: agent.definition.name,
      tool,
      allowed: refusal === undefined,
      asksApproval: this.approver.take(),
      passed: trace.passedGates,
      ...(refusal && { refusal }),
      injected: trace.injected,
      masked: trace.maskedFields,
      commands,
    };
  }
}

/** The call reached the store and only its empty answer ended it: no gate refused. */
function isForWantOfData(refusal: Refusal, commands: readonly StoreCommand[]): boolean {
  return commands.length > 0 && (refusal.gate === 'data' || isMissingTenantRow(refusal));
}

/** A simulation consumes no rate limit. */
class NoLimit extends RateLimiter {
  check(): Promise<null> {
    return Promise.resolve(null);
  }
}

/** Who calls in a simulation: what a token or an application would say of the caller. */
type SimulatedCaller = Pick<AgentOptions, 'identity' | 'tenantId' | 'claims' | 'user'>;

/**
 * An agent with the given definition for simulations. Create it once per definition, because decisions are cached per
 * definition.
 */
export function createSimulatedAgent(definition: AgentDefinition, as: SimulatedCaller = {}): Agent {
  return new Agent({
    ...as,
    definition: Object.freeze({ ...definition, rateLimiter: new NoLimit(), budget: null }),
    principal: `rehearsal:${definition.name}`,
  });
}

/** Approves in place of the person, and remembers that an approval was requested. */
export class SimulatedApprover extends Approver {
  private wasRequested = false;

  /** Whether an approval was requested since the last call. */
  take(): boolean {
    const { wasRequested } = this;
    this.wasRequested = false;
    return wasRequested;
  }

  async review(_request: ApprovalRequest): Promise<ApprovalDecision> {
    this.wasRequested = true;
    return { outcome: 'approve' };
  }
}

/** A readable field of every class, and a value with the form of an id. */
const ANY_FIELD = 'createdAt';

/** Arguments of built-in tools of which the schema alone describes too little. */
const SAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  atlas_autocomplete: { field: 'objectId' },
  atlas_faceted_search: {
    facets: { made: { path: 'createdAt', type: 'date', boundaries: ['2024-01-01', '2025-01-01'] } },
  },
  find_similar: { object_id: 'x0Ab3CdEf9' },
};

/** Whether the tool takes one class as an argument. */
export function takesClass(inputSchema: Readonly<Record<string, unknown>>): boolean {
  return member(member(inputSchema, 'properties'), 'class_name') !== undefined;
}

/** The minimal arguments of a tool on a class: the required ones, without names that a policy could withhold. */
export function sampleArguments(
  { name: tool, inputSchema }: Pick<ToolDefinition, 'name' | 'inputSchema'>,
  className: string,
): Record<string, unknown> {
  const properties = member(inputSchema, 'properties');
  const required = member(inputSchema, 'required');
  const needed = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  // An example of an optional argument indicates that a call without it may be invalid.
  const shown = Object.entries(isJsonObject(properties) ? properties : {})
    .filter(([, schema]) => member(schema, 'examples') !== undefined)
    .map(([name]) => name);
  const names = [...new Set([...needed, ...shown])];
  return {
    ...Object.fromEntries(names.map((name) => [name, sampleOf(member(properties, name))])),
    ...(Object.hasOwn(SAMPLES, tool) && SAMPLES[tool]),
    class_name: className,
  };
}

function sampleOf(schema: unknown): unknown {
  const examples = member(schema, 'examples');
  if (Array.isArray(examples)) return examples[0] as unknown;
  const choices = member(schema, 'enum');
  if (Array.isArray(choices)) return choices[0] as unknown;
  switch (member(schema, 'type')) {
    case 'array':
      return [isJsonObject(member(schema, 'items')) ? sampleItem(member(schema, 'items')) : ANY_FIELD];
    case 'object':
      return {};
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return false;
    default:
      return ANY_FIELD;
  }
}

/** Objects in lists are pipeline stages. */
function sampleItem(schema: unknown): unknown {
  return member(schema, 'type') === 'object' ? { $limit: 1 } : sampleOf(schema);
}
