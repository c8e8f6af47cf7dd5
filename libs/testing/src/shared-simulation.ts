import type { Agent, Parley, SimulatedCall, SimulatedInstance } from '@parley/server';

/** One simulation for all calls that a test explains. It opens with the first call and runs one call at a time. */
export class SharedSimulation {
  private opened: { readonly version: number; readonly simulation: Promise<SimulatedInstance> } | null = null;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly parley: Pick<Parley, 'openSimulation' | 'tools'>) {}

  simulate(agent: Agent, tool: string, args: object): Promise<SimulatedCall> {
    return this.in((simulation) => simulation.simulate(agent, tool, args));
  }

  in<T>(work: (simulation: SimulatedInstance) => Promise<T>): Promise<T> {
    const mine = this.turn.then(async () => work(await this.current()));
    this.turn = mine.catch(() => undefined);
    return mine;
  }

  /** The next call opens a new simulation, because tools, schema or roles may have changed. */
  async close(): Promise<void> {
    await this.turn;
    const { opened } = this;
    this.opened = null;
    await (await opened?.simulation.catch(() => null))?.close();
  }

  private async current(): Promise<SimulatedInstance> {
    const { version } = this.parley.tools;
    if (this.opened?.version !== version) {
      const before = this.opened;
      this.opened = { version, simulation: this.parley.openSimulation() };
      await (await before?.simulation.catch(() => null))?.close();
    }
    return this.opened.simulation;
  }
}
