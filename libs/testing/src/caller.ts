import { AssertionError } from 'node:assert';
import { randomUUID } from 'node:crypto';
import type { Agent, Gate, LogEntry, Parley, ProgressUpdate, Rehearsal } from '@parley/server';
import type { AuditBook } from './audit-book.js';
import { assertClass, assertNames, assertTool, isKind, type RefusalCode } from './known-names.js';
import {
  type Attempt,
  attemptOf,
  CallRefused,
  described,
  type ThrownErrors,
  type Told,
  type ToldRefusal,
} from './call-results.js';
import type { Rehearsals } from './rehearsals.js';
import { type Question, ScriptedPerson } from './scripted-person.js';

/** The latest revision with sessions: it asks people while a call runs. */
const PROTOCOL = { era: 'legacy', version: '2025-11-25' } as const;

export interface CallOptions {
  /** Cancels the call, as a client does that goes away. Default: nothing does. */
  readonly signal?: AbortSignal;
}

/** A tool as an agent is shown it. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

export interface CallerParts {
  /** For messages. */
  readonly name: string;
  readonly parley: Parley;
  readonly audit: AuditBook;
  readonly rehearsals: Rehearsals;
  readonly thrown: ThrownErrors;
  /** Classes that a policy speaks of, whether or not there are any rows of theirs. */
  readonly classes: readonly string[];
  /** Made anew for every request, as at a server. */
  readonly admit: () => Agent | Promise<Agent>;
}

/** An agent, and whoever sits at its client. Each call passes every gate and leaves its record, as over HTTP. */
export class Caller {
  private readonly person = new ScriptedPerson();

  /** @internal Made by `TestingApplication.as`. */
  constructor(private readonly parts: CallerParts) {}

  /** Of the agent; `ad hoc` for limits that the test gave. */
  get name(): string {
    return this.parts.name;
  }

  /** What people were asked by its calls, approvals included. */
  get questions(): readonly Question[] {
    return this.person.questions;
  }

  /** Answers that were promised for questions which nobody has asked. */
  get unasked(): number {
    return this.person.waiting;
  }

  /**
   * Calls a tool that is expected to be allowed.
   * @returns what the agent receives
   * @throws CallRefused saying which gate refused, and why
   */
  async call<Data = Record<string, unknown>>(
    tool: string,
    args: object = {},
    options: CallOptions = {},
  ): Promise<Told<Data>> {
    const attempt = await this.attempt<Data>(tool, args, options);
    if (attempt.allowed) return attempt.told;
    throw new CallRefused(this.shown(tool, args), attempt.refusal);
  }

  /** Calls a tool, whatever comes of it. @throws Error when nothing is known of what came of it */
  async attempt<Data = Record<string, unknown>>(
    tool: string,
    args: object = {},
    { signal = new AbortController().signal }: CallOptions = {},
  ): Promise<Attempt<Data>> {
    const { parley, audit, thrown } = this.parts;
    const agent = await this.parts.admit();
    const progress: ProgressUpdate[] = [];
    const log: LogEntry[] = [];
    const correlationId = randomUUID();
    const reply = await parley.kernel.dispatch(
      'tools/call',
      // As it crosses the wire: nothing of the test's own can be reached through it.
      { name: tool, arguments: JSON.parse(JSON.stringify(args)) as object },
      {
        ...this.context(agent, signal),
        correlationId,
        progress: (update) => progress.push({ ...update }),
        log: (entry) => log.push({ ...entry }),
      },
    );
    const record = await audit.ofCall(tool, correlationId);
    return attemptOf<Data>(reply, { progress, log, record }, thrown.take(agent));
  }

  /**
   * Calls a tool that is expected to be refused, with this code or kind and by this gate.
   * @returns what the agent receives, and what only the record holds
   * @throws AssertionError when it is allowed, refused by another gate or for something else, or fails; and for codes, gates,
   * tools and classes that do not exist
   */
  async expectRefused(code: RefusalCode, gate: Gate, tool: string, args: object = {}): Promise<ToldRefusal> {
    const { parley, classes } = this.parts;
    assertNames(code, gate);
    assertTool(parley, tool);
    // A class that is missing is what this code may be about.
    if (code !== 'invalid_argument')
      await assertClass(parley, (args as { class_name?: unknown }).class_name, classes);
    const attempt = await this.attempt<unknown>(tool, args);
    const fault = mismatch(attempt, code, gate);
    if (fault === null && !attempt.allowed) return attempt.refusal;
    throw new AssertionError({
      message: `${this.shown(tool, args)}\n  expected  ${wanted(code, gate)}\n  instead   ${fault}`,
      expected: { code, gate },
      actual: attempt.allowed ? 'allowed' : { code: attempt.refusal.code, gate: attempt.refusal.gate },
      operator: 'expectRefused',
    });
  }

  /** The tools that the agent is shown. */
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
   * Any other method of the protocol, prompts and resources say.
   * @throws AssertionError for an error of the protocol
   */
  async request(method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
    const agent = await this.parts.admit();
    const context = this.context(agent, new AbortController().signal);
    const reply = await this.parts.parley.kernel.dispatch(method, params, context);
    if ('result' in reply) return JSON.parse(JSON.stringify(reply.result)) as Record<string, unknown>;
    const error = 'error' in reply ? reply.error : { code: 0, message: 'no single answer' };
    throw new AssertionError({
      message: `${method} as ${this.name}\n  expected  an answer\n  instead   ${error.code} ${error.message}`,
      expected: 'an answer',
      actual: error.code,
      operator: 'request',
    });
  }

  /** Tells what would come of a call, gate by gate, and does not make it. Code of the application is not run. */
  async explain(tool: string, args: object = {}): Promise<Rehearsal> {
    assertTool(this.parts.parley, tool);
    return this.parts.rehearsals.rehearse(await this.parts.admit(), tool, args);
  }

  /** Whoever is asked next says yes. */
  approve(): void {
    this.answer({ action: 'accept', content: { approve: true } });
  }

  /** Whoever is asked next says no; with `cancel` they close the question. */
  deny(action: 'decline' | 'cancel' = 'decline'): void {
    this.answer({ action });
  }

  /** Whoever is asked next does not answer in time. The time is not waited for. */
  letTimeOut(): void {
    this.person.next('silence');
  }

  /** Nobody is there any more, as at the start: answers that were promised are forgotten. */
  leave(): void {
    this.person.leave();
  }

  /** The result that the client sends for the next question, whatever it is. */
  answer(result: unknown): void {
    this.person.next({ result });
  }

  private context(agent: Agent, signal: AbortSignal) {
    return {
      ...PROTOCOL,
      agent,
      signal,
      clientCapabilities: this.person.capabilities,
      link: this.person,
      requestId: 1,
      progress: () => undefined,
    };
  }

  private shown(tool: string, args: object): string {
    return `${tool} ${JSON.stringify(args)} as ${this.name}`;
  }
}

const wanted = (code: RefusalCode, gate: Gate): string => `to be refused with ${code} by the gate '${gate}'`;

/** In what a call differs from a refusal that was expected; null: in nothing. */
function mismatch(attempt: Attempt<unknown>, code: RefusalCode, gate: Gate): string | null {
  if (attempt.allowed) return `allowed, and told: ${attempt.told.text.slice(0, 400)}`;
  const { refusal } = attempt;
  const sameCode = isKind(code) ? refusal.kind === code : refusal.code === code;
  return sameCode && refusal.gate === gate ? null : described(refusal);
}
