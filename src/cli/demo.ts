import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configPath, type Environment, OVERLAID_VARIABLES } from '#config';

/** The address does not change the served data. */
const SAYS_WHERE = ['HOST', 'PORT'];

/** The demo file. It tries the folder depths of the bundle, of the sources and of their compiled form. */
function demoFile(): string | undefined {
  return ['../../', '../../../']
    .map((up) => fileURLToPath(new URL(`${up}parley.yaml`, import.meta.url)))
    .find((file) => existsSync(file));
}

/**
 * The configuration of the demo, for a start without a configuration file and database. Null as soon as anything is
 * configured, so that a configuration error never starts the demo.
 */
export function demoConfig(env: Environment, cwd: string): string | null {
  const configured = ['PARLEY_CONFIG', ...OVERLAID_VARIABLES.filter((name) => !SAYS_WHERE.includes(name))];
  const isSet = (name: string) => env[name] !== undefined && env[name] !== '';
  if (configured.some((name) => isSet(name) || isSet(`${name}_FILE`))) return null;
  return existsSync(configPath(env, cwd)) ? null : (demoFile() ?? null);
}
