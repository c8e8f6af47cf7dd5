import { NestFactory } from '@nestjs/core';
import { configOf } from '#config';
import { ParleyInstance } from '#instance';
import type { ClassDeclaration } from '#policy';
import { configurationOf, type ParleyModuleOptions } from './parley-options.js';
import type { BoundSeams } from './seams.js';

interface Opening {
  readonly name: string;
  readonly declared: readonly ClassDeclaration[];
  readonly seams: BoundSeams;
}

/**
 * Opens an instance for an application, before anybody may use it. Its tasks wait until `begin`: the application's tools are
 * registered when all of its modules are there.
 * @throws ConfigError listing every error of the options
 */
export function openParley(
  options: ParleyModuleOptions,
  { name, declared, seams }: Opening,
): Promise<ParleyInstance> {
  const { configuration, filters, faults } = configurationOf(options, { name, admits: seams.admits });
  const { environment = process.env, gates } = options;
  const loaded = configOf(configuration, { declared, filters, environment, found: faults });
  const { sharedState: shared, taskQueue: queue } = seams;
  return ParleyInstance.open(
    {
      loaded,
      environment,
      holdsTasks: true,
      overrides: seams.providers(),
      stateOver: (opened) => seams.stateOver(opened),
      ...(gates && { gates }),
      ...(shared && { shared }),
      ...(queue && { queue }),
    },
    // The application's logger speaks for it, and the application decides what a failed start means.
    (module) => NestFactory.createApplicationContext(module, { abortOnError: false }),
  );
}
