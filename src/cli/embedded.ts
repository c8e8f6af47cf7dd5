import { loadSeed, MongoConnection } from '#data-mongo';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { readSeedFile } from '#parley/instance';
import { UsageError } from './command-options.js';

interface EmbeddedOptions {
  readonly port: string;
  readonly database: string;
  readonly seed?: string;
  readonly data?: string;
  readonly fsync: string;
  readonly members: string;
}

/** Runs until a signal ends it. A journal with data is not seeded again. */
export async function runEmbedded({
  port,
  database,
  seed,
  data,
  fsync,
  members,
}: EmbeddedOptions): Promise<void> {
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535)
    throw new UsageError('--port: must be a whole number from 0 to 65535');
  if (fsync !== 'always' && fsync !== 'interval') throw new UsageError('--fsync: must be always or interval');
  if (!/^[1-7]$/.test(members)) throw new UsageError('--members: must be a whole number from 1 to 7');
  const parsed = seed === undefined ? null : readSeedFile(seed);
  const server = await EmbeddedMongo.start({
    port: Number(port),
    members: Number(members),
    ...(data !== undefined && { dataFile: data, fsync }),
  });
  if (parsed) {
    const connection = new MongoConnection({ uri: server.uri, database });
    try {
      await loadSeed(connection, parsed, { onlyIfEmpty: true });
    } finally {
      await connection.close();
    }
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void server.close().then(() => process.exit(0)));
  }
  process.stderr.write(`Embedded database listening on ${server.uri}\n`);
}
