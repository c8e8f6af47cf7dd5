import type { AskingCall } from '#agent';
import type { GovernedRecords } from '#data';
import type { ContentBlock } from '#tools';
import type { PromptArguments } from './prompt-arguments.js';

/** What may be suggested while an argument is typed. */
export type ArgumentCompletion =
  | { readonly kind: 'class' }
  /** Several class names separated by commas. */
  | { readonly kind: 'classes' }
  /** Fields of the class that another argument names. */
  | { readonly kind: 'field'; readonly of: string; readonly pointersOnly?: boolean };

export interface PromptArgument {
  readonly name: string;
  readonly description: string;
  /** Default false. */
  readonly required?: boolean;
  readonly completion?: ArgumentCompletion;
}

/** What a renderer may use: data only through the agent's own governed door. */
export interface PromptCall extends AskingCall {
  readonly args: PromptArguments;
  readonly records: GovernedRecords;
}

/** One message of a prompt. */
export interface PromptMessage {
  readonly role: 'user' | 'assistant';
  readonly content: ContentBlock;
}

export type RenderedPrompt =
  | string
  | { readonly description: string; readonly text: string }
  | { readonly description: string; readonly messages: readonly PromptMessage[] };

export interface Prompt {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly PromptArgument[];
  /** @throws ProtocolFault -32602 for bad arguments */
  readonly render: (call: PromptCall) => RenderedPrompt | Promise<RenderedPrompt>;
}
