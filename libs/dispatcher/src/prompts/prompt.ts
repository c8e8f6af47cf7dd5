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

/** What a prompt asks for. */
export interface PromptArgument {
  /** Unique within the prompt. */
  readonly name: string;
  /** For the person who fills it in. */
  readonly description: string;
  /** Default false. */
  readonly required?: boolean;
  /** What it may be completed to. Default nothing. */
  readonly completion?: ArgumentCompletion;
}

/** What a renderer may use: data only through the agent's own governed door. */
export interface PromptCall extends AskingCall {
  /** What the client gave for the arguments. */
  readonly args: PromptArguments;
  /** The data, as the calling agent may read it. */
  readonly records: GovernedRecords;
}

/** One message of a prompt. */
export interface PromptMessage {
  /** Whose words they are in the conversation. */
  readonly role: 'user' | 'assistant';
  /** One block of it. */
  readonly content: ContentBlock;
}

export type RenderedPrompt =
  | string
  | { readonly description: string; readonly text: string }
  | { readonly description: string; readonly messages: readonly PromptMessage[] };

/** A prompt as the registry holds it. */
export interface Prompt {
  /** Unique in the service. */
  readonly name: string;
  /** For the person who chooses one. */
  readonly description: string;
  /** What it asks for; may be empty. */
  readonly arguments: readonly PromptArgument[];
  /** Makes its messages. @throws ProtocolFault -32602 for bad arguments */
  readonly render: (call: PromptCall) => RenderedPrompt | Promise<RenderedPrompt>;
}
