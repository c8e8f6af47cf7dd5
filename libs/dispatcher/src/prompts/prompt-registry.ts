import type { Observable } from 'rxjs';
import { RegistryChanges } from '#tools';
import { BUILT_IN_PROMPTS } from './built-in-prompts.js';
import type { Prompt } from './prompt.js';

/** The prompts of this process: the built-in ones in their order, then custom ones in theirs. */
export class PromptRegistry {
  private readonly changed = new RegistryChanges('prompts');
  private prompts = PromptRegistry.builtIn();

  /** Emits after every change. A subscriber that throws is logged; the others still hear of the change. */
  readonly changes: Observable<void> = this.changed.changes;

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
    this.changed.announce();
    return () => {
      if (this.prompts.get(prompt.name) !== prompt) return;
      this.prompts.delete(prompt.name);
      this.changed.announce();
    };
  }

  /** Back to the built-in prompts. */
  reset(): void {
    this.prompts = PromptRegistry.builtIn();
    this.changed.announce();
  }

  /** By name. */
  get(name: string): Prompt | undefined {
    return this.prompts.get(name);
  }

  /** All of them, in the order of their registration. */
  all(): readonly Prompt[] {
    return [...this.prompts.values()];
  }
}
