import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { programs as Programs, beforePlugins as BeforePlugins } from '../programs.js';
import { runCached } from './code-cache.js';

interface Bundle {
  readonly programs: typeof Programs;
  readonly beforePlugins: typeof BeforePlugins;
}

/**
 * Runs a program. In the build there is a bundle of it with all of its packages, which starts fastest. Plugins need the NestJS
 * that they import themselves, so a configuration with plugins runs the program from its modules.
 */
export async function launch(name: keyof typeof Programs): Promise<void> {
  const modules = () => import('../programs.js').then(({ programs }) => programs[name]());
  const file = fileURLToPath(new URL('./programs.cjs', import.meta.url));
  if (!existsSync(file)) return modules();
  const { programs, beforePlugins } = runCached(file) as Bundle;
  return new Promise((ended, failed) => {
    beforePlugins(async () => {
      await modules().then(ended, failed);
      // What waits for its plugins has been replaced.
      await new Promise<never>(() => undefined);
    });
    programs[name]().then(ended, failed);
  });
}
