import 'reflect-metadata';
import { Inject, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Observable } from 'rxjs';
import { assertOptions } from '#policy';
import { listMethods, promptWarning, refuseDecoratedParameters, RegistryChanges } from '#tools';
import { BUILT_IN_PROMPTS, PARSE_PROMPTS } from './built-in-prompts.js';
import type { Prompt, PromptArgument } from './prompt.js';

/** Whether there are classes of Parse. */
export const SERVES_PARSE = Symbol('whether there are classes of Parse');

/** The prompts of this process: the built-in ones in their order, then custom ones in registration order. */
@Injectable()
export class PromptRegistry {
  private readonly changed = new RegistryChanges('prompts');
  private readonly logger = new Logger('Prompts');
  private prompts: Map<string, Prompt>;

  /** Emits after every change. A subscriber that throws is logged; the others still receive the change. */
  readonly changes: Observable<void> = this.changed.changes;

  /** @param servesParse false over plain collections alone: prompts about Parse are not offered */
  constructor(@Inject(SERVES_PARSE) private readonly servesParse = true) {
    this.prompts = this.builtIn();
  }

  private builtIn(): Map<string, Prompt> {
    const offered = BUILT_IN_PROMPTS.filter(({ name }) => this.servesParse || !PARSE_PROMPTS.has(name));
    return new Map(offered.map((prompt) => [prompt.name, prompt]));
  }

  /**
   * Adds a prompt. A prompt of the same name, built in or not, is replaced at its position.
   * @returns a function that removes it and restores nothing. @throws TypeError without a name
   */
  register(prompt: Prompt): () => void {
    if (typeof prompt.name !== 'string' || prompt.name === '')
      throw new TypeError('prompt: name must not be empty');
    const refused = promptWarning(prompt.name);
    if (refused !== null) this.logger.warn(`prompt '${prompt.name}': ${refused}`);
    this.prompts.set(prompt.name, prompt);
    this.changed.announce();
    return () => {
      if (this.prompts.get(prompt.name) !== prompt) return;
      this.prompts.delete(prompt.name);
      this.changed.announce();
    };
  }

  /** Restores the built-in prompts. */
  reset(): void {
    this.prompts = this.builtIn();
    this.changed.announce();
  }

  /** Returns the prompt of that name. */
  get(name: string): Prompt | undefined {
    return this.prompts.get(name);
  }

  /** All of them, in the order of their registration. */
  all(): readonly Prompt[] {
    return [...this.prompts.values()];
  }
}

const PROMPT = Symbol('parley:prompt');

/** Options that make a method of a provider a prompt. */
export interface PromptOptions {
  /** The name of a built-in prompt replaces it. */
  readonly name: string;
  /** For the user who selects it. */
  readonly description: string;
  /** Default: none. */
  readonly arguments?: readonly PromptArgument[];
}

interface PromptDeclaration extends Required<PromptOptions> {
  readonly methodName: string;
}

/**
 * Makes a method of an injectable provider a prompt: `(call: PromptCall) => text | messages`. It reads data through
 * `call.records`, with the rights of the calling agent. Stores metadata and nothing else.
 * @throws TypeError at declaration, without a name or a description
 */
export function Prompt(options: PromptOptions): MethodDecorator {
  assertOptions('@Prompt', options, { name: true, description: true, arguments: true });
  const { name, description, arguments: args = [] } = options;
  for (const [part, text] of Object.entries({ name, description }))
    if (typeof text !== 'string' || text.trim() === '')
      throw new TypeError(`@Prompt: ${part} must not be blank`);
  return (_prototype, _methodName, descriptor) => {
    Reflect.defineMetadata(PROMPT, { name, description, arguments: args }, descriptor.value as object);
  };
}

/** The prompts declared on a provider's prototype, in order of declaration. */
function promptDeclarations(prototype: object): readonly PromptDeclaration[] {
  return [...listMethods(prototype)].flatMap(([methodName, method]) => {
    const declared = Reflect.getOwnMetadata(PROMPT, method) as Required<PromptOptions> | undefined;
    return declared ? [{ ...declared, methodName }] : [];
  });
}

/** The names of the prompts that a provider's prototype declares. */
export const listPromptNames = (prototype: object): readonly string[] =>
  promptDeclarations(prototype).map(({ name }) => name);

/** Finds `@Prompt` methods on the application's providers and registers them. */
@Injectable()
export class PromptExplorer implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly registry: PromptRegistry,
  ) {}

  onModuleInit(): void {
    for (const { instance } of this.discovery.getProviders())
      for (const prompt of listPrompts(instance)) this.registry.register(prompt);
  }
}

/** The `@Prompt` methods of a provider. @throws TypeError for a decorated parameter */
export function listPrompts(instance: unknown): Prompt[] {
  if (instance === null || typeof instance !== 'object') return [];
  const prototype = Object.getPrototypeOf(instance) as object | null;
  if (prototype === null) return [];
  return promptDeclarations(prototype).map(({ methodName, ...prompt }) => {
    refuseDecoratedParameters(instance, methodName, '@Prompt');
    return {
      ...prompt,
      render: (call) => (Reflect.get(instance, methodName) as Prompt['render']).call(instance, call),
    };
  });
}
