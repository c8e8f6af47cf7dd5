import { AssertionError } from 'node:assert';
import { randomUUID } from 'node:crypto';
import {
  type Agent,
  type Gate,
  type LogEntry,
  McpRequest,
  type Parley,
  type ProgressUpdate,
  type RequestTransport,
  type SimulatedCall,
} from '@parley/server';
import type { AuditRecords } from './audit-records.js';
import { assertClass, assertNames, assertTool, isKind, type RefusalCode } from './known-names.js';
import {
  type Attempt,
  toAttempt,
  CallRefused,
  describeRefusal,
  type ThrownErrors,
  type ToolResult,
  type ToolRefusal,
} from './call-results.js';
import type { SharedSimulation } from './shared-simulation.js';
import { type Question, ScriptedPerson } from './scripted-person.js';

/** The latest revision with sessions: it sends client requests while a call runs. */
const PROTOCOL = { era: 'legacy', version: '2025-11-25' } as const;

export interface CallOptions {
  /** Cancels the call, like a client that disconnects. Default: the call is not cancelled. */
  readonly signal?: AbortSignal;
}

/** A tool as listed to an agent. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

export interface CallerDependencies {
  /** The name in messages. */
  readonly name: string;
  readonly parley: Parley;
  readonly audit: AuditRecords;
  readonly simulation: SharedSimulation;
  readonly thrown: ThrownErrors;
  /** Classes that a policy names, with or without rows. */
  readonly classes: readonly string[];
  /** Creates the agent for every request, like a server. */
  readonly admit: () => Agent | Promise<Agent>;
}

/** An agent and the user at its client. Each call passes every gate and leaves its record, as over HTTP. */
export class Caller {
  private readonly person = new ScriptedPerson();

  /** @internal Made by `TestingApplication.as`. */
  constructor(private readonly dependencies: CallerDependencies) {}

  /** The name of the agent; `ad hoc` for limits that the test gave. */
  get name(): string {
    return this.dependencies.name;
  }

  /** The client requests of its calls, approvals included. */
  get questions(): readonly Question[] {
    return this.person.questions;
  }

  /** Number of scripted answers that no client request has used. */
  get unasked(): number {
    return this.person.waiting;
  }

  /**
   * Calls a tool that is expected to be allowed.
   * @returns the result that the agent receives
   * @throws CallRefused with the gate that refused and the reason
   */
  async call<Data = Record<string, unknown>>(
    tool: string,
    args: object = {},
    options: CallOptions = {},
  ): Promise<ToolResult<Data>> {
    const attempt = await this.attempt<Data>(tool, args, options);
    if (attempt.allowed) return attempt.result;
    throw new CallRefused(this.describeCall(tool, args), attempt.refusal);
  }

  /** Calls a tool and returns any outcome. @throws Error when the outcome is unknown */
  async attempt<Data = Record<string, unknown>>(
    tool: string,
    args: object = {},
    { signal = new AbortController().signal }: CallOptions = {},
  ): Promise<Attempt<Data>> {
    const { parley, audit, thrown } = this.dependencies;
    const agent = await this.dependencies.admit();
    const progress: ProgressUpdate[] = [];
    const log: LogEntry[] = [];
    const correlationId = randomUUID();
    const reply = await parley.kernel.dispatch(
      'tools/call',
      // Serialised, so that the call shares no object with the test.
      { name: tool, arguments: JSON.parse(JSON.stringify(args)) as object },
      this.createRequest(agent, {
        signal,
        correlationId,
        progress: (update) => progress.push({ ...update }),
        log: (entry) => log.push({ ...entry }),
      }),
    );
    const record = await audit.ofCall(tool, correlationId);
    return toAttempt<Data>(reply, { progress, log, record }, thrown.take(agent));
  }

  /**
   * Calls a tool that is expected to be refused, with this code or kind and by this gate.
   * @returns the refusal that the agent receives, and the members that only the record has
   * @throws AssertionError when it is allowed, refused by another gate or for another reason, or fails; and for codes,
   * gates, tools and classes that do not exist
   */
  async expectRefused(code: RefusalCode, gate: Gate, tool: string, args: object = {}): Promise<ToolRefusal> {
    const { parley, classes } = this.dependencies;
    assertNames(code, gate);
    assertTool(parley, tool);
    // A missing class may be the reason for this code.
    if (code !== 'invalid_argument')
      await assertClass(parley, (args as { class_name?: unknown }).class_name, classes);
    const attempt = await this.attempt<unknown>(tool, args);
    const error = mismatch(attempt, code, gate);
    if (error === null && !attempt.allowed) return attempt.refusal;
    throw new AssertionError({
      message: `${this.describeCall(tool, args)}\n  expected  ${expectation(code, gate)}\n  instead   ${error}`,
      expected: { code, gate },
      actual: attempt.allowed ? 'allowed' : { code: attempt.refusal.code, gate: attempt.refusal.gate },
      operator: 'expectRefused',
    });
  }

  /** The tools that are listed to the agent. */
  async listTools(): Promise<readonly ListedTool[]> {
    const tools: ListedTool[] = [];
    let cursor: unknown;
    do {
      const page = await this.request('tools/list', cursor === undefined ? {} : { cursor });
      tools.push(...(page['tools'] as ListedTool[]));
      cursor = page['nextCursor'];
    } while (cursor !== undefined);
    return tools;
  }

  /**
   * Sends any other protocol request, such as prompts and resources.
   * @throws AssertionError for a protocol error
   */
  async request(method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
    const agent = await this.dependencies.admit();
    const context = this.createRequest(agent, { signal: new AbortController().signal });
    const reply = await this.dependencies.parley.kernel.dispatch(method, params, context);
    if ('result' in reply) return JSON.parse(JSON.stringify(reply.result)) as Record<string, unknown>;
    const error = 'error' in reply ? reply.error : { code: 0, message: 'no single answer' };
    throw new AssertionError({
      message: `${method} as ${this.name}\n  expected  an answer\n  instead   ${error.code} ${error.message}`,
      expected: 'an answer',
      actual: error.code,
      operator: 'request',
    });
  }

  /** Simulates a call, gate by gate. Code of the application does not run. */
  async explain(tool: string, args: object = {}): Promise<SimulatedCall> {
    assertTool(this.dependencies.parley, tool);
    return this.dependencies.simulation.simulate(await this.dependencies.admit(), tool, args);
  }

  /** Approves the next client request. */
  approve(): void {
    this.answer({ action: 'accept', content: { approve: true } });
  }

  /** Declines the next client request; with `cancel` the user closes it. */
  deny(action: 'decline' | 'cancel' = 'decline'): void {
    this.answer({ action });
  }

  /** The next client request times out at once. */
  letTimeOut(): void {
    this.person.next('silence');
  }

  /** Removes all scripted answers, as at the start. */
  leave(): void {
    this.person.leave();
  }

  /** The result that the client sends for the next client request of any kind. */
  answer(result: unknown): void {
    this.person.next({ result });
  }

  private createRequest(agent: Agent, transport: RequestTransport): McpRequest {
    const { person } = this;
    const own = { ...PROTOCOL, clientCapabilities: person.capabilities, link: person, requestId: 1 };
    return new McpRequest(agent, { ...own, ...transport });
  }

  private describeCall(tool: string, args: object): string {
    return `${tool} ${JSON.stringify(args)} as ${this.name}`;
  }
}

const expectation = (code: RefusalCode, gate: Gate): string =>
  `to be refused with ${code} by the gate '${gate}'`;

/** The difference between a call and an expected refusal; null: none. */
function mismatch(attempt: Attempt<unknown>, code: RefusalCode, gate: Gate): string | null {
  if (attempt.allowed) return `allowed, and told: ${attempt.result.text.slice(0, 400)}`;
  const { refusal } = attempt;
  const sameCode = isKind(code) ? refusal.kind === code : refusal.code === code;
  return sameCode && refusal.gate === gate ? null : describeRefusal(refusal);
}
