import type { Rehearsal } from '#dispatcher';
import { NotServed, readSmallJson } from '#streaming';
import type { OperatorNotes } from '../operator-gate.js';
import type { Route } from '../route.js';

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
  abstract rehearse(order: SimulationRequest): Promise<Rehearsal | undefined>;
}

/** Explains what an agent may do by simulating a call. Nothing is executed and nothing is sent to the database. */
export function explainRoutes(simulations: SimulationService, notes: OperatorNotes): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/agents',
      answer: async () => ({ body: await simulations.catalogue() }),
    },
    {
      verb: 'POST',
      path: '/console/api/explain',
      answer: async ({ operator, request }) => {
        const order = orderOf(await readSmallJson(request));
        const simulation = await simulations.rehearse(order).catch((error: unknown) => {
          if (error instanceof SimulationsBusy)
            throw new NotServed(503, 'too many questions wait already', { 'Retry-After': '2' });
          throw error;
        });
        if (!simulation) throw new NotServed(404, 'no such agent');
        notes.write(operator, 'console.explain', `${order.agent} ${order.tool}`);
        return { body: simulation };
      },
    },
  ];
}

/** @throws NotServed */
function orderOf({ agent, tool, args, user }: Readonly<Record<string, unknown>>): SimulationRequest {
  if (typeof agent !== 'string' || agent === '') throw new NotServed(400, 'agent must be a name');
  if (typeof tool !== 'string' || tool === '') throw new NotServed(400, 'tool must be a name');
  if (args === null || typeof args !== 'object' || Array.isArray(args))
    throw new NotServed(400, 'args must be a JSON object');
  if (user !== undefined && typeof user !== 'string')
    throw new NotServed(400, 'user must be the id of a user');
  return {
    agent,
    tool,
    args: args as SimulationRequest['args'],
    ...(user !== undefined && user !== '' && { user }),
  };
}
