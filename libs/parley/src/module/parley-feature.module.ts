import { Inject, Logger, Module, type OnModuleInit } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, ModulesContainer } from '@nestjs/core';
import { FeatureList, findOversight, listMissing } from './features.js';
import { ParleyHost } from './parley-host.js';

/** Contains the list of one `forFeature`, and reports its errors. */
@Module({ imports: [DiscoveryModule] })
export class ParleyFeatureModule implements OnModuleInit {
  constructor(
    @Inject(FeatureList) private readonly features: FeatureList,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {}

  /** @throws TypeError for a class that no module provides */
  onModuleInit(): void {
    const { features, discovery } = this;
    const missing = listMissing(features, discovery).map(({ name }) => name);
    if (missing.length > 0)
      throw new TypeError(
        `forFeature: no module provides ${missing.join(', ')}: add it to providers of ${this.findImporter()}`,
      );
    const log = new Logger('Parley');
    const { instance, classes } = features;
    const names = this.listInstanceNames();
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

  private listInstanceNames(): string[] {
    return this.discovery.getProviders().flatMap(({ instance }) => {
      const host = instance as unknown;
      return host instanceof ParleyHost ? [host.parley.name] : [];
    });
  }

  /** The name of the module that imports this list. */
  private findImporter(): string {
    const isImporter = (imports: ReadonlySet<{ readonly instance: unknown }>) =>
      [...imports].some(({ instance }) => instance === this);
    const found = [...this.modules.values()].find(({ imports }) => isImporter(imports));
    return found?.name ?? 'the module that has what it injects';
  }
}
