import { Observable } from 'rxjs';
import { BUILT_IN_PROMPTS } from './built-in-prompts.js';
import type { Prompt } from './prompt.js';

export type PromptListener = () => void;

/** The prompts of this process: the built-in ones in their order, then custom ones in theirs. */
export class PromptRegistry {
  private readonly listeners = new Set<PromptListener>();
  private prompts = PromptRegistry.builtIn();

  /** Emits after every change. */
  readonly changes = new Observable<void>((subscriber) => this.onChange(() => subscriber.next()));

  /** @internal @param onListenerFault told when a listener throws; the other listeners still hear */
  constructor(private readonly onListenerFault: (fault: unknown) => void = () => undefined) {}

  private static builtIn(): Map<string, Prompt> {
    return new Map(BUILT_IN_PROMPTS.map((prompt) => [prompt.name, prompt]));
  }

  /**
   * Adds a prompt; one of the same name, built in or not, is replaced where it stands.
   * @returns takes it away again, and brings nothing back. @throws TypeError without a name
   */
  register(prompt: Prompt): () => void {
    if (typeof prompt.name !== 'string' || prompt.name === '')
      throw new TypeError('prompt: name must not be empty');
    this.prompts.set(prompt.name, prompt);
    this.notify();
    return () => {
      if (this.prompts.get(prompt.name) !== prompt) return;
      this.prompts.delete(prompt.name);
      this.notify();
    };
  }

  /** Back to the built-in prompts. */
  reset(): void {
    this.prompts = PromptRegistry.builtIn();
    this.notify();
  }

  /** By name. */
  get(name: string): Prompt | undefined {
    return this.prompts.get(name);
  }

  /** All of them, in the order of their registration. */
  all(): readonly Prompt[] {
    return [...this.prompts.values()];
  }

  /** @internal Calls back after every change; unlike with `changes`, one that throws is told of. @returns how to stop */
  onChange(listener: PromptListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private notify(): void {
    for (const listener of this.listeners) {
      try {
        listener();
      } catch (fault) {
        this.onListenerFault(fault);
      }
    }
  }
}
