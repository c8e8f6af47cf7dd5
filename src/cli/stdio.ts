import { type Environment, locateError } from '#config';
import { openDatabase, loadWithPlugins } from '#parley/instance';

/**
 * Serves MCP on standard input and output until the input ends.
 * @throws ConfigError when the configuration, the seed or the environment does not permit a start
 */
export async function runStdio(env: Environment, cwd: string): Promise<void> {
  const loaded = await loadWithPlugins(env, cwd, { start: 'stdio' });
  const opening = openDatabase(loaded.config);
  const loading = import('../stdio-service.js');
  const database = await opening;
  try {
    const { serveStdio } = await loading;
    await serveStdio(loaded, database.connection, env);
  } catch (error) {
    throw locateError(error, loaded.locate);
  } finally {
    await database.close();
  }
}
