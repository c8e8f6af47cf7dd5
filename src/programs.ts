// The programs in one module, for the bundle that holds all of their packages (tools/build/bundle.mjs).
import 'reflect-metadata';

export { beforePlugins } from '#parley/instance';

/** Programs by name. Each is loaded when it runs. */
export const programs = {
  service: async (): Promise<void> => (await import('./service-program.js')).runService(),
  commands: async (): Promise<void> => (await import('./cli/program.js')).runCommandLine(),
};
