import {
  Agent,
  type AgentOptions,
  type AgentShape,
  isMissingTenantRow,
  RateLimiter,
  type Refusal,
} from '#core';
import type { ToolRunner } from '#tools';
import { type ApprovalDecision, type ApprovalRequest, Approver } from '../calls/approval.js';
import { isJsonObject, member } from '../json-object.js';
import {
  GateTrace,
  type InjectedLimit,
  type MaskedField,
  type PassedGate,
  type RecordingStore,
  type StoreCommand,
} from './recording-store.js';

/** What would have come of a call, and how it was decided. */
export interface Rehearsal {
  /** By name. */
  readonly agent: string;
  /** By name. */
  readonly tool: string;
  /** No gate refused. */
  readonly allowed: boolean;
  /** A person would be asked before the call runs. */
  readonly asksApproval: boolean;
  /** In the order they were asked. */
  readonly passed: readonly PassedGate[];
  /** Present when a gate refused. */
  readonly refusal?: Refusal;
  /** What limits the rows, and who says so. */
  readonly injected: readonly InjectedLimit[];
  /** Of the classes that the call uses. */
  readonly masked: readonly MaskedField[];
  /** What would have been sent to the database. The first command may have answered differently there. */
  readonly commands: readonly StoreCommand[];
}

/**
 * Runs calls through the pipeline and the governed records that serve them, up to the door of the store and no further.
 * One call at a time.
 */
export class Simulator {
  /** @param runner made over this very `store` and `approver` */
  constructor(
    private readonly runner: ToolRunner,
    private readonly store: RecordingStore,
    private readonly approver: SimulatedApprover,
  ) {}

  async rehearse(agent: Agent, tool: string, args: unknown): Promise<Rehearsal> {
    const trace = new GateTrace();
    this.store.take();
    this.approver.take();
    const signal = new AbortController().signal;
    const outcome = await this.runner.run(tool, args, { agent, signal, trace, progress: () => undefined });
    const commands = this.store.take();
    const refusal = outcome.ok || isForWantOfData(outcome.refusal, commands) ? undefined : outcome.refusal;
    return {
      agent: agent.shape.name,
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

/** The store was reached, and only its empty answer ended the call: no gate did. */
function isForWantOfData(refusal: Refusal, commands: readonly StoreCommand[]): boolean {
  return commands.length > 0 && (refusal.gate === 'data' || isMissingTenantRow(refusal));
}

/** A rehearsal spends nothing of anybody's budget. */
class NoLimit extends RateLimiter {
  check(): Promise<null> {
    return Promise.resolve(null);
  }
}

/** An agent of the given shape as a rehearsal runs it; make it once per shape, because decisions are kept per shape. */
export function simulatedAgent(
  shape: AgentShape,
  as: Pick<AgentOptions, 'identity' | 'tenantId'> = {},
): Agent {
  return new Agent({
    ...as,
    shape: Object.freeze({ ...shape, rateLimiter: new NoLimit(), budget: null }),
    principal: `rehearsal:${shape.name}`,
  });
}

/** Says yes for the person who would be asked, and remembers that somebody would be. */
export class SimulatedApprover extends Approver {
  private asked = false;

  /** Whether a person would have been asked since the last time. */
  take(): boolean {
    const { asked } = this;
    this.asked = false;
    return asked;
  }

  async review(_request: ApprovalRequest): Promise<ApprovalDecision> {
    this.asked = true;
    return { outcome: 'approve' };
  }
}

/** Readable on every class, and an id by its shape. */
const ANY_FIELD = 'createdAt';

/** Whether the tool is asked about one class. */
export function takesClass(inputSchema: Readonly<Record<string, unknown>>): boolean {
  return member(member(inputSchema, 'properties'), 'class_name') !== undefined;
}

/** The least that a tool can be called with on a class: its required arguments, naming nothing that a policy could withhold. */
export function sampleArguments(
  inputSchema: Readonly<Record<string, unknown>>,
  className: string,
): Record<string, unknown> {
  const properties = member(inputSchema, 'properties');
  const required = member(inputSchema, 'required');
  const needed = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  // An example of an optional argument says that a call without it may mean nothing.
  const shown = Object.entries(isJsonObject(properties) ? properties : {})
    .filter(([, schema]) => member(schema, 'examples') !== undefined)
    .map(([name]) => name);
  const names = [...new Set([...needed, ...shown])];
  return {
    ...Object.fromEntries(names.map((name) => [name, sampleOf(member(properties, name))])),
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
