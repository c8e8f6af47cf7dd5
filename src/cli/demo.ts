import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configPath, type Environment, OVERLAID_VARIABLES } from '#config';

/** The address does not change what is served. */
const SAYS_WHERE = ['HOST', 'PORT'];

/** The demo beside what runs: so many folders up from the bundle, from the sources and from what was compiled of them. */
function demoFile(): string | undefined {
  return ['../../', '../../../']
    .map((up) => fileURLToPath(new URL(`${up}parley.yaml`, import.meta.url)))
    .find((file) => existsSync(file));
}

/**
 * The configuration of the demo, for whoever has neither a file nor a database: what they meant to try. Null as soon as
 * anything is configured, so that no mistake in it is answered with the demo.
 */
export function demoConfig(env: Environment, cwd: string): string | null {
  const configured = ['PARLEY_CONFIG', ...OVERLAID_VARIABLES.filter((name) => !SAYS_WHERE.includes(name))];
  const says = (name: string) => env[name] !== undefined && env[name] !== '';
  if (configured.some((name) => says(name) || says(`${name}_FILE`))) return null;
  return existsSync(configPath(env, cwd)) ? null : (demoFile() ?? null);
}
