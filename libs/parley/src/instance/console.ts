import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import type { AuditSink } from '#audit';
import type { LoadedConfig } from '#config';
import type { CallStatistics, ConsoleHost, LiveRecords } from '#console';
import type { SchemaCatalogue } from '#data';
import { compareSurfaces } from '#dispatcher';
import type { SharedState } from '#state';
import { productVersion, readBuiltPage } from '../package-files.js';
import type { ConsoleOpening, InstanceConsole } from './parley-instance.js';
import { Readiness } from './routes/readiness.js';
import { InstanceProvidersModule } from './routes/routes.module.js';
import type { ReadableAgain } from './configuration-changes.js';
import { createSimulatedIdentity, simulateInstance } from './simulation.js';

/** Agents times classes of one comparison of versions: each costs a simulated call per tool. */
const MOST_COMPARED = 1_000;

/**
 * Opens the console of an instance, where its configuration names operators. Its code is loaded only then.
 * @returns null without operators: nothing is kept and nothing is served
 */
export async function openConsole(
  { config: { console }, rehearse, recall }: LoadedConfig & ReadableAgain,
  { bus }: SharedState,
  opening: ConsoleOpening,
): Promise<InstanceConsole | null> {
  if (console.operators === null) return null;
  const { CallStatistics, LiveRecords } = await import('#console');
  return new OpenConsole(new LiveRecords(bus), new CallStatistics(), opening, {
    rehearse: rehearse ?? null,
    recall: recall ?? null,
  });
}

class OpenConsole implements InstanceConsole {
  readonly listeners: readonly AuditSink[];

  constructor(
    private readonly live: LiveRecords,
    private readonly statistics: CallStatistics,
    private readonly opening: ConsoleOpening,
    private readonly readings: Pick<ConsoleHost['simulations'], 'rehearse' | 'recall'>,
  ) {
    this.listeners = [live, statistics];
  }

  async routes(app: INestApplicationContext): Promise<DynamicModule> {
    const { CONSOLE_IMPORTS, ConsoleModule } = await import('#console');
    const { live, statistics } = this;
    const host: ConsoleHost = {
      live,
      statistics,
      product: productVersion(),
      folder: readBuiltPage('console'),
      readiness: app.get(Readiness),
      simulations: this.simulations(app),
    };
    return ConsoleModule.register(host, InstanceProvidersModule.register(app, CONSOLE_IMPORTS));
  }

  private simulations(app: INestApplicationContext): ConsoleHost['simulations'] {
    const { start = (opening) => opening() } = this.opening;
    // Schema and roles are those of the instance; the other ports of a simulation have no backend.
    const open = (loaded: LoadedConfig, schemas: (read: SchemaCatalogue) => SchemaCatalogue) =>
      start(() => simulateInstance(app, { loaded, schemas, sessions: 'simulated' }));
    return {
      open: async (version) => {
        let catalogue: SchemaCatalogue | undefined;
        const simulation = await open(version, (read) => (catalogue = read));
        return {
          ...simulation,
          classNames: async () => (await catalogue?.snapshot())?.classNames() ?? [],
        };
      },
      compare: (before, after) => compareSurfaces([before, after], open, MOST_COMPARED),
      ...this.readings,
      identityOf: createSimulatedIdentity,
    };
  }
}
