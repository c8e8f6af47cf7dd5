import type { Agent } from '#agent';
import type { Grant } from './grant.js';

/** An agent that more scopes would lead to. */
export interface StepUp {
  /** All that are needed, those the caller has included. */
  readonly scopes: readonly string[];
  readonly shape: Agent['shape'];
}

export interface ScopeLadderOptions {
  /** Without all of them nobody is admitted. */
  readonly required: readonly string[];
  /** For tokens with none of the scopes below. */
  readonly base: Grant;
  /** From the least to the most; a token with several gets the last. */
  readonly steps: readonly (readonly [scope: string, grant: Grant])[];
}

/** From the scopes of a token to its agent, and to those that it does not reach. */
export class ScopeLadder {
  constructor(private readonly options: ScopeLadderOptions) {}

  get required(): readonly string[] {
    return this.options.required;
  }

  lacksRequired(scopes: ReadonlySet<string>): boolean {
    return this.options.required.some((scope) => !scopes.has(scope));
  }

  grantOf(scopes: ReadonlySet<string>): Grant {
    return this.options.steps[this.heightOf(scopes)]?.[1] ?? this.options.base;
  }

  /** The steps above the one that these scopes reach, nearest first. */
  above(scopes: ReadonlySet<string>): readonly StepUp[] {
    const { steps, required } = this.options;
    return steps.slice(this.heightOf(scopes) + 1).map(([scope, { shape }]) => ({
      scopes: [...new Set([...required, ...this.held(scopes), scope])],
      shape,
    }));
  }

  /** Scopes of ours alone: what else a token is good for is nobody's business here. */
  private held(scopes: ReadonlySet<string>): string[] {
    return this.options.steps.map(([scope]) => scope).filter((scope) => scopes.has(scope));
  }

  private heightOf(scopes: ReadonlySet<string>): number {
    return this.options.steps.findLastIndex(([scope]) => scopes.has(scope));
  }
}
