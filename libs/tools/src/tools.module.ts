import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import type { EnvironmentGates } from '#policy';
import { BUILT_IN_TOOLS } from './built-in-tools.js';
import { CallableMethods, DeclaredMethods, MethodRegistry } from './methods/method-registry.js';
import { ToolCatalogue, ToolRegistry } from './registry/tool-registry.js';
import { ToolEnvironment } from './tool.js';

/** The registries of tools and declared methods, and the environment's gates on them. */
@Module({})
export class ToolsModule {
  static register(gates: EnvironmentGates): DynamicModule {
    return {
      module: ToolsModule,
      providers: [
        { provide: ToolRegistry, useClass: ToolCatalogue },
        MethodRegistry,
        { provide: DeclaredMethods, useExisting: MethodRegistry },
        { provide: CallableMethods, useExisting: MethodRegistry },
        { provide: ToolEnvironment, useValue: gates },
      ],
      exports: [ToolRegistry, MethodRegistry, DeclaredMethods, CallableMethods, ToolEnvironment],
    };
  }
}

/** Parley's own tools. The explorer of the instance registers them. */
@Module({})
export class BuiltInToolsModule {
  /** @param imports provide the dependencies of built-in tools: the registries, the runner, exports and embeddings */
  static register(imports: ModuleMetadata['imports']): DynamicModule {
    return { module: BuiltInToolsModule, imports: [...(imports ?? [])], providers: [...BUILT_IN_TOOLS] };
  }
}
