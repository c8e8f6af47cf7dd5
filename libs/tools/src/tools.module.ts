import { Module } from '@nestjs/common';
import { provideFromInstance } from '#core';
import { EmbeddingsModule } from '#data';
import { BUILT_IN_TOOLS } from './built-in-tools.js';
import { CallableMethods, DeclaredMethods, MethodRegistry } from './methods/method-registry.js';
import { ToolCatalogue, ToolRegistry } from './registry/tool-registry.js';
import { Changes } from './changes/changes.js';
import { ExportStore } from './export/export-files.js';
import { PermittedTools, ToolEnvironment } from './tool.js';

/** The registries of tools and declared methods, and the environment's gates on them. */
@Module({
  providers: [
    { provide: ToolRegistry, useClass: ToolCatalogue },
    MethodRegistry,
    { provide: DeclaredMethods, useExisting: MethodRegistry },
    { provide: CallableMethods, useExisting: MethodRegistry },
    provideFromInstance(ToolEnvironment),
  ],
  exports: [ToolRegistry, MethodRegistry, DeclaredMethods, CallableMethods, ToolEnvironment],
})
export class ToolsModule {}

/** Parley's own tools. The explorer of the instance registers them. */
@Module({
  imports: [ToolsModule, EmbeddingsModule],
  providers: [
    provideFromInstance(PermittedTools),
    provideFromInstance(ExportStore),
    provideFromInstance(Changes),
    ...BUILT_IN_TOOLS,
  ],
})
export class BuiltInToolsModule {}
