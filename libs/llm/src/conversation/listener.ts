import type { ProgressUpdate } from '#agent';
import type { JsonObject } from '#dispatcher';

/** A call that a model asked for and what came of it. */
export interface MadeCall {
  /** Name of the tool. */
  readonly name: string;
  /** Null: what the model wrote was no JSON object, and nothing was called. */
  readonly arguments: JsonObject | null;
  /** As the model was given it, without the marker. */
  readonly result: string;
  /** Whether the call was refused or failed. */
  readonly failed: boolean;
}

/** Hears how an answer comes about. What a listener throws goes to `warn` and changes nothing. */
export interface ConversationListener {
  /** A part of the answer, as it arrives. */
  readonly onText?: (text: string) => void;
  /** The model asks for a call. */
  readonly onToolCall?: (call: Pick<MadeCall, 'name' | 'arguments'>) => void;
  /** A running call reports how far it is. */
  readonly onProgress?: (name: string, update: ProgressUpdate) => void;
  /** A call has ended. */
  readonly onToolResult?: (call: MadeCall) => void;
  /** A request to the model is repeated. */
  readonly onRetry?: (seconds: number, why: string) => void;
  /** The model has answered; once per turn. */
  readonly onModelTurn?: (text: string) => void;
  /** The question failed. */
  readonly onError?: (error: unknown) => void;
}

/** The listener, made safe to call. */
export function safely(
  listener: ConversationListener,
  warn: (line: string) => void,
): Required<ConversationListener> {
  const call =
    <A extends unknown[]>(hear: ((...args: A) => void) | undefined) =>
    (...args: A) => {
      try {
        hear?.(...args);
      } catch (error) {
        warn(`a listener of the conversation failed: ${error instanceof Error ? error.name : 'unknown'}`);
      }
    };
  return {
    onText: call(listener.onText),
    onToolCall: call(listener.onToolCall),
    onProgress: call(listener.onProgress),
    onToolResult: call(listener.onToolResult),
    onRetry: call(listener.onRetry),
    onModelTurn: call(listener.onModelTurn),
    onError: call(listener.onError),
  };
}
