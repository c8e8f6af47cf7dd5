import type { Environment } from '#config';

/** A required argument of a command is missing or invalid; ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
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
