import type { Agent } from '#agent';
import type { Message } from '../message.js';

/** One request that is being answered, and what may end it from outside. */
export class Call {
  /** Made when somebody asks for the signal: most answers need none. */
  private controller: AbortController | null = null;
  private reason: string | null = null;

  constructor(
    readonly agent: Agent,
    readonly message: Message,
    /** The session it came in, or a mere label that names none. */
    readonly label: string | undefined,
  ) {}

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.reason !== null) this.controller.abort(this.reason);
    }
    return this.controller.signal;
  }

  /** Why it was ended from outside; null: it was not. */
  get abortedBecause(): string | null {
    return this.reason;
  }

  /** The first reason stays. */
  abort(reason: string): void {
    if (this.reason !== null) return;
    this.reason = reason;
    this.controller?.abort(reason);
  }
}
