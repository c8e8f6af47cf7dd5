import type { Provider } from '@nestjs/common';
import { MethodExplorer, PromptExplorer, ToolContext, ToolExplorer } from '#dispatcher';
import type { EnvironmentGates } from '#policy';
import {
  BUILT_IN_TOOLS,
  CallableMethods,
  DeclaredMethods,
  MethodRegistry,
  ToolCatalogue,
  ToolEnvironment,
  ToolRegistry,
} from '#tools';

/** What can be called: the built-in tools, and whatever the application declares and is found by the explorers. */
export function toolProviders(gates: EnvironmentGates): Provider[] {
  return [
    ...BUILT_IN_TOOLS,
    { provide: ToolRegistry, useClass: ToolCatalogue },
    ToolContext,
    ToolExplorer,
    PromptExplorer,
    MethodExplorer,
    MethodRegistry,
    { provide: DeclaredMethods, useExisting: MethodRegistry },
    { provide: CallableMethods, useExisting: MethodRegistry },
    { provide: ToolEnvironment, useValue: gates },
  ];
}
