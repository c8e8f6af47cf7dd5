import { ConfigError, dotEnv } from '#config';
import { sourceStack } from './launch/source-stack.js';
import { serve } from './serve.js';

/** The program of `npm start` and of the image: the service over HTTP. */
export async function runService(): Promise<void> {
  try {
    Object.assign(process.env, dotEnv(process.env, process.cwd()));
    await serve(process.env, process.cwd());
  } catch (error) {
    const text = error instanceof ConfigError ? error.message : sourceStack(String((error as Error).stack));
    process.stderr.write(`${text}\n`);
    process.exitCode = 1;
  }
}
