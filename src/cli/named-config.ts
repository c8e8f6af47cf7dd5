import type { Environment } from '#config';

/** The environment with `--config` in the place of PARLEY_CONFIG. */
export function withConfig(file: string | undefined): Environment {
  return file === undefined ? process.env : { ...process.env, PARLEY_CONFIG: file };
}
