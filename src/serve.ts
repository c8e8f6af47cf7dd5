import { closeSync, constants, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { type Environment, locateError, processCount } from '#config';
import { closeWithin, type LoadedService, loadWithPlugins, openDatabase } from '#parley/instance';
import { endWithFailure, isOneOfSeveral, obeyFirstProcess } from './processes/one-of-several.js';
import type { RunningService } from './running-service.js';

/** Milliseconds that the database may take to close. */
const DATABASE_TIMEOUT = 2_000;

/**
 * Starts the service and returns once it listens.
 * @throws ConfigError when the configuration, the seed or the environment does not permit a start
 */
export async function serve(env: Environment, cwd: string): Promise<RunningService> {
  const onHangup = keepHangups();
  if (isOneOfSeveral(env)) {
    try {
      const service = await open(await loadWithPlugins(env, cwd, { start: 'http' }), env);
      obeyFirstProcess(service);
      return service;
    } catch (error) {
      return endWithFailure(error);
    }
  }
  const loaded = await loadWithPlugins(env, cwd, { start: 'http' });
  const service = await (processCount(loaded.config.server) === 1
    ? open(loaded, env)
    : (await import('./processes/first-process.js')).serveFromSeveral(loaded, env));
  const end = closeOnSignals(() => service.close());
  onHangup(() => (hasLostTerminal() ? end() : void service.reload()));
  process.stderr.write(`Parley listening on ${service.url}\n`);
  return service;
}

/** Serves from this process. */
async function open(loaded: LoadedService, env: Environment): Promise<RunningService> {
  // The database starts on its own thread while the framework, most of the start-up time, loads on this one.
  const opening = openDatabase(loaded.config);
  const loading = import('./http-service.js');
  const database = await opening;
  try {
    const { startHttpService } = await loading;
    const service = await startHttpService(loaded, database.connection, env);
    const close = async () => {
      await service.close();
      const { Logger } = await import('@nestjs/common');
      await closeWithin(DATABASE_TIMEOUT, [['the database', () => database.close()]], new Logger('Parley'));
    };
    return { url: service.url, reload: () => service.reload(), close };
  } catch (error) {
    await database.close();
    throw locateError(error, loaded.locate);
  }
}

/**
 * Without a listener SIGHUP ends a process. One that comes during the start asks for what the start may have read already.
 * @returns takes what a SIGHUP does from then on, and does it at once when one came before
 */
function keepHangups(): (answer: () => void) => void {
  let came = false;
  const keep = () => {
    came = true;
  };
  process.on('SIGHUP', keep);
  return (answer) => {
    process.off('SIGHUP', keep);
    process.on('SIGHUP', answer);
    if (came) answer();
  };
}

/** Without one of these `nohup` started it: it goes on without its terminal. */
const startedInTerminal = hasTerminal() && [0, 1, 2].some((descriptor) => isatty(descriptor));

/** Whether the process belongs to a terminal that is open. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', constants.O_RDONLY | constants.O_NOCTTY));
    return true;
  } catch {
    return false;
  }
}

/** Whether the terminal that the service was started in is closed, which sends SIGHUP as well. */
const hasLostTerminal = (): boolean => startedInTerminal && !hasTerminal();

/** Ends the process after running calls have ended; a second signal ends it at once. @returns ends it too */
function closeOnSignals(close: () => Promise<void>): () => void {
  let closing = false;
  const end = () => {
    if (closing) return;
    closing = true;
    close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => (closing ? process.exit(1) : end()));
  return end;
}
