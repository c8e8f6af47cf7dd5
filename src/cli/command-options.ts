import type { Environment } from '#config';
import { readJson } from '#core';

/** A required argument of a command is missing or invalid; ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What a command reads, and how it writes. */
export interface OutputOptions {
  readonly config?: string;
  readonly json?: boolean;
}

export interface StartOptions {
  readonly config?: string;
  readonly port?: string;
}

/** The environment with the options of a start instead of PARLEY_CONFIG and PORT. @throws UsageError */
export function withStartOptions({ config, port }: StartOptions): Environment {
  if (port === undefined) return withConfig(config);
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new UsageError('--port: must be a whole number from 0 to 65535');
  return { ...withConfig(config), PORT: port };
}

/** The environment with `--config` instead of PARLEY_CONFIG. */
export function withConfig(file: string | undefined): Environment {
  return file === undefined ? process.env : { ...process.env, PARLEY_CONFIG: file };
}

/** An object that was given on the command line as JSON. @throws UsageError */
export function readObject(text: string, what: string): Readonly<Record<string, unknown>> {
  const reading = readJson(text);
  if (!reading.ok) throw new UsageError(`${what} cannot be read: ${reading.why}`);
  const { value } = reading;
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new UsageError(`${what} must be a JSON object`);
  return value as Readonly<Record<string, unknown>>;
}

/** The agent that `--agent` names; without one the only one of the configuration. @throws UsageError listing the existing agents */
export function chooseAgent<T>(agents: ReadonlyMap<string, T>, chosen: string | undefined): [string, T] {
  const names = [...agents.keys()].join(', ');
  const [only, ...others] = agents;
  if (chosen === undefined && only && others.length === 0) return only;
  if (chosen === undefined) throw new UsageError(`choose one with --agent: ${names}`);
  const agent = agents.get(chosen);
  if (agent === undefined)
    throw new UsageError(`no agent named '${chosen}'; the configuration has: ${names}`);
  return [chosen, agent];
}
