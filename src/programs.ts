// The programs in one module, for the bundle that holds all of their packages (tools/build/bundle.mjs).
import 'reflect-metadata';

export { beforePlugins } from '#parley/instance';

/** Programs by name. Each is loaded when it runs. */
export const programs = {
  /** With arguments it is `parley serve`, which says what there is and refuses what there is not. */
  service: async (): Promise<void> => {
    const args = process.argv.slice(2);
    if (args.length === 0) return (await import('./service-program.js')).runService();
    return (await import('./cli/program.js')).runCommandLine(['serve', ...args]);
  },
  commands: async (): Promise<void> => (await import('./cli/program.js')).runCommandLine(),
};
