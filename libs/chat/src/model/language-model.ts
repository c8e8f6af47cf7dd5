import type { JsonObject } from '#core';
import type { MadeCall } from './made-call.js';

/** A tool as it is described to the model. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly parameters: JsonObject;
  /** Whether the tool is declared read-only: such calls may run concurrently. */
  readonly readOnly: boolean;
}

export interface RequestedCall {
  readonly id: string;
  readonly name: string;
  /** Null: the model did not write a JSON object. */
  readonly args: JsonObject | null;
}

/** The result of a call, already marked as data. */
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
  /** Text of the operator only; never data that was read. */
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly OfferedTool[];
}

export interface TokenCount {
  readonly prompt: number;
  readonly completion: number;
}

/**
 * `tools`: it requests calls. `cut-off`: the token limit was reached, or it ended for a reason that is not known. `withheld`: the provider
 * stopped the answer.
 */
export type StopReason = 'done' | 'tools' | 'cut-off' | 'withheld';

export interface ModelTurn {
  readonly text: string;
  readonly calls: readonly RequestedCall[];
  /** Null: the server does not report usage. */
  readonly tokens: TokenCount | null;
  readonly stop: StopReason;
}

export interface TurnWatch {
  readonly signal: AbortSignal;
  /** Called with each part of the text. */
  readonly onText?: (text: string) => void;
  /** Called before a request is repeated, with the delay in seconds and the reason. */
  readonly onRetry?: (seconds: number, why: string) => void;
}

/** A model at an endpoint. */
export abstract class LanguageModel {
  abstract readonly provider: string;
  abstract readonly model: string;
  /** Removes credentials from a text. */
  abstract withoutSecrets(text: string): string;
  /** @throws LanguageModelError; the reason of `signal` when it is aborted */
  abstract turn(request: ModelRequest, watch: TurnWatch): Promise<ModelTurn>;
}

/**
 * `unreachable`: no connection. `timeout`: no answer in time. `http`: an error status. `overloaded`: an error inside
 * a stream. `redirected`: a redirect, which is not followed. `malformed`: an invalid answer. `too-large`: an answer
 * beyond the limit.
 */
export type ModelErrorKind =
  'unreachable' | 'timeout' | 'http' | 'overloaded' | 'redirected' | 'malformed' | 'too-large' | 'no-room';

interface ModelErrorDetails {
  readonly status?: number | undefined;
  /** Seconds that the server asks to wait. */
  readonly retryAfter?: number | undefined;
  /** Whether the same request may succeed later. */
  readonly transient?: boolean;
}

/** The model could not be reached or did not answer. The message is one line without credentials. */
export class LanguageModelError extends Error {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'LanguageModelError';
  /** HTTP status of the server, if it answered. */
  readonly status: number | undefined;
  /** Seconds that the server asks to wait. */
  readonly retryAfter: number | undefined;
  /** Whether the same request may succeed later. */
  readonly transient: boolean;
  /** The calls of tools that ran before it, of a question that failed. */
  toolCalls: readonly MadeCall[] = [];

  constructor(
    /** Kind of the error. */
    readonly kind: ModelErrorKind,
    message: string,
    { status, retryAfter, transient = false }: ModelErrorDetails = {},
  ) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.transient = transient;
  }

  /** The same error with another message. */
  reword(message: string): LanguageModelError {
    return message === this.message ? this : new LanguageModelError(this.kind, message, this);
  }
}

/** Invalid settings; the message names the setting and the choices. */
export class ModelSettingsError extends Error {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'ModelSettingsError';
}
