import type { OnModuleDestroy } from '@nestjs/common';
import type { LoadedConfig } from '#config';
import {
  type SimulationCatalogue,
  SimulationService,
  type SimulationRequest,
  SimulationsBusy,
  type SimulatedTool,
} from '#console';
import { type SimulatedCall, simulatedAgent } from '#dispatcher';
import { type SimulatedInstance, simulatedIdentity } from '#instance';

/** Maximum requests that wait for the running one. */
const MOST_WAITING = 16;
/** Milliseconds without a request after which a simulation is closed. */
const IDLE = 5 * 60_000;

interface Opened<Loaded> {
  readonly loaded: Loaded;
  readonly room: Promise<SimulatedInstance>;
}

/**
 * Simulated calls beside a running service: the simulation opens with the first request and runs one call at a time.
 */
export class ConfiguredSimulations<Loaded extends LoadedConfig>
  extends SimulationService
  implements OnModuleDestroy
{
  private opened: Opened<Loaded> | null = null;
  private turn: Promise<unknown> = Promise.resolve();
  private waiting = 0;
  private idle: NodeJS.Timeout | null = null;

  /**
   * @param current the served configuration: a simulation of an older one is closed
   * @param open opens a simulation of it
   */
  constructor(
    private readonly current: () => Loaded,
    private readonly open: (loaded: Loaded) => Promise<SimulatedInstance>,
  ) {
    super();
  }

  catalogue(): Promise<SimulationCatalogue> {
    return this.inTurn(async (simulation, { config, identities }) => {
      const tools = new Map<string, SimulatedTool>();
      const agents = [...simulation.agents].map(([name, agent]) => {
        const permitted = simulation.runner.list({ agent });
        for (const { name: tool, description, inputSchema } of permitted)
          tools.set(tool, {
            name: tool,
            description,
            input_schema: inputSchema as SimulatedTool['input_schema'],
          });
        return {
          name,
          permissions: agent.permissions,
          tenant_id: agent.tenantId,
          asks_user: identities.get(name) === 'callerSession',
          operator: config.console.operators?.includes(name) ?? false,
          tools: permitted.map((tool) => tool.name),
        };
      });
      return { agents: agents.sort(byName), tools: [...tools.values()].sort(byName) };
    });
  }

  simulate({ agent: name, tool, args, user }: SimulationRequest): Promise<SimulatedCall | undefined> {
    return this.inTurn(async (simulation, { agents, identities }) => {
      const known = simulation.agents.get(name);
      const definition = agents.get(name);
      if (!known || !definition) return undefined;
      const identity = user === undefined ? undefined : simulatedIdentity(identities.get(name), user);
      const agent = identity ? simulatedAgent(definition, { identity }) : known;
      return simulation.simulator.simulate(agent, tool, args);
    });
  }

  onModuleDestroy(): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    if (this.idle !== null) clearTimeout(this.idle);
    const { opened } = this;
    this.opened = null;
    await (await opened?.room.catch(() => null))?.close();
  }

  /** @throws SimulationsBusy */
  private async inTurn<T>(work: (simulation: SimulatedInstance, loaded: Loaded) => Promise<T>): Promise<T> {
    if (this.waiting >= MOST_WAITING) throw new SimulationsBusy();
    this.waiting += 1;
    const mine = this.turn.then(async () => {
      const { room, loaded } = await this.currentSimulation();
      return work(await room, loaded);
    });
    this.turn = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      this.waiting -= 1;
      this.closeWhenIdle();
    }
  }

  private async currentSimulation(): Promise<Opened<Loaded>> {
    const loaded = this.current();
    if (this.opened?.loaded !== loaded) {
      await this.close();
      this.opened = { loaded, room: this.open(loaded) };
    }
    const { opened } = this;
    try {
      await opened?.room;
    } catch (error) {
      this.opened = null;
      throw error;
    }
    return opened as Opened<Loaded>;
  }

  private closeWhenIdle(): void {
    if (this.idle !== null) clearTimeout(this.idle);
    this.idle = setTimeout(() => {
      this.turn = this.turn.then(() => this.close()).catch(() => undefined);
    }, IDLE);
    this.idle.unref();
  }
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}
