import type { JsonObject } from '#dispatcher';

/** A tool as a model is told of it. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly parameters: JsonObject;
  /** Whether it declares that it changes nothing: such calls may run side by side. */
  readonly readOnly: boolean;
}

/** What a model asks for. */
export interface RequestedCall {
  readonly id: string;
  readonly name: string;
  /** Null: what it wrote is no JSON object. */
  readonly args: JsonObject | null;
}

/** What came of a call, already marked as data. */
export interface CallResult {
  readonly id: string;
  readonly content: string;
  readonly failed: boolean;
}

export type ModelMessage =
  | { readonly role: 'user' | 'system'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly RequestedCall[] }
  | { readonly role: 'tool'; readonly results: readonly CallResult[] };

export interface ModelRequest {
  /** Of the operator; nothing that was read ever stands in it. */
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly OfferedTool[];
}

export interface TokenCount {
  readonly prompt: number;
  readonly completion: number;
}

/** `tools`: it wants to know what its calls came to. `cut-off`: out of tokens. `withheld`: the provider stopped it. */
export type StopReason = 'done' | 'tools' | 'cut-off' | 'withheld';

export interface ModelTurn {
  readonly text: string;
  readonly calls: readonly RequestedCall[];
  /** Null: the server does not count. */
  readonly tokens: TokenCount | null;
  readonly stop: StopReason;
}

export interface TurnWatch {
  readonly signal: AbortSignal;
  /** Hears the text as it comes. */
  readonly onText?: (text: string) => void;
  /** Hears that a request is repeated, in how many seconds, and why. */
  readonly onRetry?: (seconds: number, why: string) => void;
}

/** One model at one place. */
export abstract class LanguageModel {
  abstract readonly provider: string;
  abstract readonly model: string;
  /** Takes out of a text what must never leave this process. */
  abstract withoutSecrets(text: string): string;
  /** @throws LanguageModelError; the reason of `signal` when it was given up */
  abstract turn(request: ModelRequest, watch: TurnWatch): Promise<ModelTurn>;
}

/**
 * `unreachable`: nobody answered. `timeout`: nothing came in time. `http`: an error status. `overloaded`: told inside a stream.
 * `redirected`: sent elsewhere, and not followed. `malformed`: an answer that cannot be one. `too-large`: more than is read.
 */
export type ModelFault =
  'unreachable' | 'timeout' | 'http' | 'overloaded' | 'redirected' | 'malformed' | 'too-large' | 'no-room';

interface FaultDetails {
  readonly status?: number | undefined;
  /** Seconds that the server asks to wait. */
  readonly retryAfter?: number | undefined;
  /** The same request may do better in a moment. */
  readonly transient?: boolean;
}

/** A model could not be asked, or did not answer. The message is one line and holds no credential. */
export class LanguageModelError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'LanguageModelError';
  /** HTTP status that the server answered with, where it did. */
  readonly status: number | undefined;
  /** Seconds that the server asks to wait. */
  readonly retryAfter: number | undefined;
  /** The same request may do better in a moment. */
  readonly transient: boolean;

  constructor(
    /** What went wrong. */
    readonly fault: ModelFault,
    message: string,
    { status, retryAfter, transient = false }: FaultDetails = {},
  ) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.transient = transient;
  }

  /** The same error in other words. */
  reworded(message: string): LanguageModelError {
    return message === this.message ? this : new LanguageModelError(this.fault, message, this);
  }
}

/** Settings with which no model can be asked; the message names the setting and the choices. */
export class ModelSettingsError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'ModelSettingsError';
}
