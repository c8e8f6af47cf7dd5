import { ConfigError, dotEnv } from '#config';
import { serve } from './serve.js';

/** The program of `npm start` and of the image: the service over HTTP. */
export async function runService(): Promise<void> {
  try {
    Object.assign(process.env, dotEnv(process.env, process.cwd()));
    await serve(process.env, process.cwd());
  } catch (error) {
    process.stderr.write(`${error instanceof ConfigError ? error.message : String((error as Error).stack)}\n`);
    process.exitCode = 1;
  }
}
