import type { Agent, Parley, Rehearsal, SimulatedInstance } from '@parley/server';

/** One simulation for all calls that a test explains. It opens with the first call and runs one call at a time. */
export class Rehearsals {
  private opened: { readonly version: number; readonly room: Promise<SimulatedInstance> } | null = null;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly parley: Pick<Parley, 'openRehearsals' | 'tools'>) {}

  rehearse(agent: Agent, tool: string, args: object): Promise<Rehearsal> {
    return this.in((simulation) => simulation.rehearse(agent, tool, args));
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
    await (await opened?.room.catch(() => null))?.close();
  }

  private async current(): Promise<SimulatedInstance> {
    const { version } = this.parley.tools;
    if (this.opened?.version !== version) {
      const before = this.opened;
      this.opened = { version, room: this.parley.openRehearsals() };
      await (await before?.room.catch(() => null))?.close();
    }
    return this.opened.room;
  }
}
