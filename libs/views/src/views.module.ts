import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { ResourceRegistry } from '#dispatcher';
import { VIEW_PAGES, ViewResources } from './view-resources.js';

/** Pages that show results at hosts of MCP Apps, as resources. */
@Module({ providers: [ViewResources] })
export class ViewsModule {
  /** Registers before the hooks of plugins run, which could otherwise take the scheme. */
  constructor(resources: ResourceRegistry, views: ViewResources) {
    resources.register(views);
  }

  /** @param pages returns the folder of the built pages. @param imports provide the registry of resources */
  static register(pages: () => string, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: ViewsModule,
      imports: [...(imports ?? [])],
      providers: [{ provide: VIEW_PAGES, useValue: pages }],
    };
  }
}
