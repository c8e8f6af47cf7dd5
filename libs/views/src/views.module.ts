import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { ResourceRegistry } from '#dispatcher';
import { readResultsView } from './results-view.js';
import { ViewResources } from './view-resources.js';

/** Pages that show results at hosts of MCP Apps, as resources. */
@Module({})
export class ViewsModule {
  /** @param folder of the built pages. @param imports provide the registry of resources */
  static register(folder: () => string, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: ViewsModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: ViewResources,
          useFactory: (registry: ResourceRegistry) => {
            const views = new ViewResources(() => readResultsView(folder()));
            registry.register(views);
            return views;
          },
          inject: [ResourceRegistry],
        },
      ],
    };
  }
}
