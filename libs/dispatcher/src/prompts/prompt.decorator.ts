import 'reflect-metadata';
import { methodsOf } from '#tools';
import type { PromptArgument } from './prompt.js';

const PROMPT = Symbol('parley:prompt');

/** What a provider says about one of its methods to make it a prompt. */
export interface PromptOptions {
  /** One of a built-in prompt replaces it. */
  readonly name: string;
  /** For whoever chooses it. */
  readonly description: string;
  /** Default: none. */
  readonly arguments?: readonly PromptArgument[];
}

export interface PromptDeclaration extends Required<PromptOptions> {
  readonly methodName: string;
}

/**
 * Makes a method of an injectable provider a prompt: `(call: PromptCall) => text | messages`. It reads data through
 * `call.records`, with the rights of whoever asked. Stores metadata and nothing else.
 * @throws TypeError at declaration, without a name or a description
 */
export function Prompt(options: PromptOptions): MethodDecorator {
  const { name, description, arguments: args = [] } = options;
  for (const [part, text] of Object.entries({ name, description }))
    if (typeof text !== 'string' || text.trim() === '')
      throw new TypeError(`@Prompt: ${part} must not be blank`);
  return (_prototype, _methodName, descriptor) => {
    Reflect.defineMetadata(PROMPT, { name, description, arguments: args }, descriptor.value as object);
  };
}

/** The prompts declared on a provider's prototype, in order of declaration. */
export function promptDeclarations(prototype: object): readonly PromptDeclaration[] {
  return [...methodsOf(prototype)].flatMap(([methodName, method]) => {
    const declared = Reflect.getOwnMetadata(PROMPT, method) as Required<PromptOptions> | undefined;
    return declared ? [{ ...declared, methodName }] : [];
  });
}
