import { Module } from '@nestjs/common';
import { DispatcherModule, ResourceRegistry } from '#dispatcher';
import { ViewResources } from './view-resources.js';

/** Pages that show results at hosts of MCP Apps, as resources. */
@Module({ imports: [DispatcherModule], providers: [ViewResources] })
export class ViewsModule {
  /** Registers before the hooks of plugins run, which could otherwise take the scheme. */
  constructor(resources: ResourceRegistry, views: ViewResources) {
    resources.register(views);
  }
}
