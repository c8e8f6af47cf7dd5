import { Inject, Logger, Module, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { FeatureList, findOversight } from './features.js';
import { ParleyHost } from './parley-host.js';

/** Contains the providers of one `forFeature`, and reports its errors. */
@Module({})
export class ParleyFeatureModule implements OnModuleInit {
  constructor(
    @Inject(FeatureList) private readonly features: FeatureList,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {}

  onModuleInit(): void {
    const log = new Logger('Parley');
    const { instance, classes } = this.features;
    const names = this.instanceNames();
    if (!names.includes(instance)) {
      const there =
        names.length > 0 ? `there are: ${names.join(', ')}` : 'ParleyModule.forRoot is not imported';
      const listed = classes.map(({ name }) => name).join(', ');
      log.warn(
        `forFeature: no instance '${instance}' in this application (${there}); nowhere served: ${listed}`,
      );
    }
    for (const type of classes) {
      const oversight = findOversight(type);
      if (oversight !== null) log.warn(`forFeature: ${type.name} ${oversight}`);
    }
  }

  private instanceNames(): string[] {
    return [...this.modules.values()].flatMap(({ providers }) => {
      const host = providers.get(ParleyHost)?.instance as unknown;
      return host instanceof ParleyHost ? [host.parley.name] : [];
    });
  }
}
