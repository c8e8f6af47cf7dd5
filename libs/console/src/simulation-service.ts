import type { SimulatedCall } from '#dispatcher';

/** An agent whose calls can be simulated, and its tools. */
interface SimulatedAgent {
  readonly name: string;
  readonly permissions: string;
  readonly tenant_id: string | number | null;
  /** It reads with the session of its caller: a simulation needs a user. */
  readonly asks_user: boolean;
  /** Names of tools. */
  readonly tools: readonly string[];
}

export interface SimulationCatalogue {
  readonly agents: readonly SimulatedAgent[];
  /** All tools that any of the agents may call. */
  readonly tools: readonly SimulatedTool[];
}

export interface SimulatedTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: Readonly<Record<string, unknown>>;
}

export interface SimulationRequest {
  readonly agent: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Id of the user whose session is simulated. */
  readonly user?: string;
}

/** Too many simulations are waiting. */
export class SimulationsBusy extends Error {
  override readonly name = 'SimulationsBusy';
  constructor() {
    super('too many rehearsals wait already');
  }
}

/** Simulates calls: their gates are evaluated, and nothing is executed. */
export abstract class SimulationService {
  /** The agents and tools, sorted by name. */
  abstract catalogue(): Promise<SimulationCatalogue>;
  /** @returns `undefined` for an unknown agent. @throws SimulationsBusy */
  abstract simulate(order: SimulationRequest): Promise<SimulatedCall | undefined>;
}
