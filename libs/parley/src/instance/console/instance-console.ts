import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import type { AuditSink } from '#audit';
import type { LoadedConfig } from '#config';
import type { SharedState } from '#state';
import type { KeptRecords } from './kept-records.js';
import type { ConsoleOpening, InstanceConsole } from '../parley-instance.js';

/**
 * Opens the console of an instance, where its configuration names operators. Its code is loaded only then.
 * @returns null without operators: nothing is kept and nothing is served
 */
export async function openConsole(
  {
    config: {
      console: { operators },
    },
  }: LoadedConfig,
  { bus }: SharedState,
  opening: ConsoleOpening,
): Promise<InstanceConsole | null> {
  if (operators === null) return null;
  const { CallStatistics, LiveRecords } = await import('#console');
  return new OpenConsole({ live: new LiveRecords(bus), statistics: new CallStatistics() }, opening);
}

class OpenConsole implements InstanceConsole {
  readonly listeners: readonly AuditSink[];

  constructor(
    private readonly kept: KeptRecords,
    private readonly opening: ConsoleOpening,
  ) {
    this.listeners = [kept.live, kept.statistics];
  }

  async routes(app: INestApplicationContext, shared: SharedState): Promise<DynamicModule> {
    const { consoleRoutes } = await import('./console-routes.js');
    return consoleRoutes(app, { shared, ...this.kept, ...this.opening });
  }
}
