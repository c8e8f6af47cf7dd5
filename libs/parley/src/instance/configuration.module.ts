import { Module } from '@nestjs/common';
import { ConfigVersions, type LoadedConfig } from '#config';
import { SharedState, StateModule } from '#state';

export const LOADED_CONFIG = Symbol('configuration of the start');

/** The versions of the configuration. The libs see the agents and policies of them. */
@Module({
  imports: [StateModule],
  providers: [
    {
      provide: ConfigVersions,
      useFactory: (loaded: LoadedConfig, { limiters }: SharedState) => new ConfigVersions(loaded, limiters),
      inject: [LOADED_CONFIG, SharedState],
    },
  ],
  exports: [ConfigVersions],
})
export class ConfigurationModule {}
