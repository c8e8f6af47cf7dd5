import type { Rehearsal } from '#dispatcher';

/** An agent whose calls can be rehearsed, and the tools it may call. */
export interface RehearsedAgent {
  readonly name: string;
  readonly permissions: string;
  readonly tenant_id: string | number | null;
  /** It reads with the session of its caller: the rehearsal needs a user. */
  readonly asks_user: boolean;
  /** Names. */
  readonly tools: readonly string[];
}

export interface RehearsalCatalogue {
  readonly agents: readonly RehearsedAgent[];
  /** Those that any of the agents may call. */
  readonly tools: readonly RehearsedTool[];
}

export interface RehearsedTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: Readonly<Record<string, unknown>>;
}

export interface RehearsalOrder {
  readonly agent: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Id of the user whose session is rehearsed. */
  readonly user?: string;
}

/** Too many wait already. */
export class RehearsalsBusy extends Error {
  override readonly name = 'RehearsalsBusy';
  constructor() {
    super('too many rehearsals wait already');
  }
}

/** What would come of a call, and of none: nothing runs. */
export abstract class RehearsalDesk {
  /** What there is to ask about, sorted by name. */
  abstract catalogue(): Promise<RehearsalCatalogue>;
  /** @returns `undefined` when there is no such agent. @throws RehearsalsBusy */
  abstract rehearse(order: RehearsalOrder): Promise<Rehearsal | undefined>;
}
