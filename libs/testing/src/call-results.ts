import { ToolCallbacks } from '@parley/server';
import type {
  Agent,
  ApplicationCode,
  AuditRecord,
  DenialKind,
  ErrorCode,
  KernelReply,
  LogEntry,
  Parley,
  ProgressUpdate,
} from '@parley/server';
import { AssertionError } from 'node:assert';
import { inspect } from 'node:util';

interface Beside {
  /** Progress that the tool reported, in order. */
  readonly progress: readonly ProgressUpdate[];
  /** Lines that the tool logged to its client. */
  readonly log: readonly LogEntry[];
  /** The audit record of the call. */
  readonly record: AuditRecord;
}

/** The result of a call that was allowed, as the client receives it. */
export interface ToolResult<Data = Record<string, unknown>> extends Beside {
  /** The structured content; without it, the text as JSON; without that, the text. */
  readonly data: Data;
  /** Every text block of the answer, a line each. */
  readonly text: string;
  /** Every block of the answer. */
  readonly content: readonly Readonly<Record<string, unknown>>[];
}

/** The result of a refused or failed call, with the members that only the audit record has. */
export interface ToolRefusal extends Beside {
  /** The text for the model. */
  readonly text: string;
  /** The code for programs. */
  readonly code: ErrorCode | ApplicationCode;
  /** The access rule that refused; absent for refusals of other gates. */
  readonly kind?: DenialKind;
  /** `parse.details` as the agent receives them. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** Seconds. */
  readonly retryAfter?: number;
  /** The check that refused. The agent does not receive it. */
  readonly gate: string;
  /** The reason, for the operator alone. */
  readonly cause?: string;
  /** The thrown error is no refusal: the call failed, and no rule refused it. */
  readonly failed: boolean;
  /** The thrown error. It is neither returned nor recorded. */
  readonly thrown?: unknown;
}

/** The result of `attempt`, by `allowed`. */
export type Attempt<Data = Record<string, unknown>> =
  | {
      readonly allowed: true;
      readonly result: ToolResult<Data>;
    }
  | { readonly allowed: false; readonly refusal: ToolRefusal };

/** A call that was expected to be allowed was refused or failed. */
export class CallRefused extends AssertionError {
  constructor(
    call: string,
    /** The actual refusal. */
    readonly refusal: ToolRefusal,
  ) {
    super({
      message: `${call}\n  expected  to be allowed\n  instead   ${describeRefusal(refusal)}`,
      expected: 'allowed',
      actual: { code: refusal.code, gate: refusal.gate },
      operator: 'call',
    });
    this.name = 'CallRefused';
  }
}

export function describeRefusal({ code, kind, gate, text, cause, failed, thrown }: ToolRefusal): string {
  const what = failed
    ? `failed with ${code}: something was thrown that is no refusal`
    : `refused with ${code}${kind ? ` (${kind})` : ''} by the gate '${gate}'`;
  const lines = [
    what,
    `told: ${text}`,
    ...(cause === undefined ? [] : [`cause, not told: ${cause}`]),
    ...(failed && thrown !== undefined
      ? [`thrown, not told: ${thrown instanceof Error ? String(thrown) : inspect(thrown)}`]
      : []),
  ];
  return lines.join('\n            ');
}

const readText = ({ text }: Members): string => (typeof text === 'string' ? text : '');

type Members = Readonly<Record<string, unknown>>;
const isMembers = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Serialised copies of values, so that a test shares no object with the server. */
const toSent = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));

/** @throws Error for an answer and a record that contradict each other */
export function toAttempt<Data>(reply: KernelReply, beside: Beside, thrown: unknown): Attempt<Data> {
  const { record } = beside;
  const answer = 'result' in reply ? toSent(reply.result) : undefined;
  const error = 'error' in reply ? reply.error : undefined;
  const members = isMembers(answer) ? answer : {};
  const allowed = isMembers(answer) && members['isError'] !== true;
  if (allowed !== record.success)
    throw new Error(`the answer says ${allowed ? 'allowed' : 'refused'}, the record does not`);
  const content = (Array.isArray(members['content']) ? members['content'] : []) as Members[];
  const text = error ? error.message : content.map(readText).join('\n');
  if (allowed) {
    const data = members['structuredContent'] ?? parseText(text);
    return { allowed, result: { ...beside, data: data as Data, text, content } };
  }
  const failed = record.error_code === 'internal_error';
  const meta = isMembers(members['_meta']) ? members['_meta'] : {};
  const details = meta['parse.details'];
  const retryAfter = meta['parse.retry_after'];
  return {
    allowed,
    refusal: {
      ...beside,
      text,
      code: record.error_code ?? 'internal_error',
      gate: record.gate ?? 'handler',
      ...(record.denial_kind !== undefined && { kind: record.denial_kind }),
      ...(isMembers(details) && { details }),
      ...(typeof retryAfter === 'number' && { retryAfter }),
      ...(record.cause !== undefined && { cause: record.cause }),
      failed,
      ...(thrown !== undefined && { thrown }),
    },
  };
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Errors that calls threw and the agent does not receive. Each call has a separate agent. */
export class ThrownErrors {
  private readonly byAgent = new WeakMap<Agent, unknown>();

  constructor(parley: Pick<Parley, 'get'>) {
    parley.get(ToolCallbacks).onError((error, { agent }) => this.byAgent.set(agent, error));
  }

  /** Undefined: no error was thrown. */
  take(agent: Agent): unknown {
    const error = this.byAgent.get(agent);
    this.byAgent.delete(agent);
    return error;
  }
}
