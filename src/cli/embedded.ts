import { loadSeed, MongoConnection } from '#data-mongo';
import { EmbeddedMongo } from '#embedded-mongo';
import { readSeedFile } from '#composition';

export interface EmbeddedOptions {
  readonly port: string;
  readonly database: string;
  readonly seed?: string;
  readonly data?: string;
}

/** Runs until a signal ends it. A journal that already holds the data is not seeded again. */
export async function runEmbedded({ port, database, seed, data }: EmbeddedOptions): Promise<void> {
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) throw new Error('--port must be a port number');
  const parsed = seed === undefined ? null : readSeedFile(seed);
  const server = await EmbeddedMongo.start({
    port: Number(port),
    ...(data !== undefined && { dataFile: data }),
  });
  if (parsed) {
    const connection = new MongoConnection({ uri: server.uri, database });
    try {
      await loadSeed(connection, parsed, { onlyIfEmpty: true });
    } finally {
      await connection.close();
    }
  }
  process.stderr.write(`Embedded database listening on ${server.uri}\n`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void server.close().then(() => process.exit(0)));
  }
}
