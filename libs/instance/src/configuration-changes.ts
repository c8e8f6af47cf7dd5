import { type INestApplicationContext, Logger } from '@nestjs/common';
import { filter, map, merge } from 'rxjs';
import { Agent, type AgentDefinition } from '#core';
import { OperationLog } from '#audit';
import {
  ConfigVersions,
  ConfigWatch,
  logSecurityWarnings,
  mustReturn,
  Reloader,
  type VersionChange,
} from '#config';
import { FilterNames, PromptRegistry } from '#dispatcher';
import { type ChangingList, McpEdge, Wire } from '#streaming';
import { PermittedTools, ToolRegistry } from '#tools';
import { checkFilterNames } from './agent-names.js';
import type { LoadedService } from './plugins.js';

/** A service that can reload its configuration at run time. */
export interface ConfigurationReload {
  /** Reads the file now, even if it looks unchanged. Never rejects. */
  reload(): Promise<void>;
  stop(): void;
}

/** The origin of a configuration; without both members nothing is reloaded. */
export type ReadableAgain = Partial<Pick<LoadedService, 'file' | 'reread'>>;

/** Starts to follow the configuration file. Call it at the end of a start. */
export function followConfiguration(
  app: INestApplicationContext,
  { file, reread }: ReadableAgain,
): ConfigurationReload {
  const versions = app.get(ConfigVersions);
  const log = new Logger('Parley');
  versions.changes.subscribe((change) => {
    const { now } = change;
    app.get(OperationLog).resize(now.policy.switches.maxLogSize);
    app.get(McpEdge).endStreamsOf(mustReturn(change));
    logSecurityWarnings(now, log, new Set());
  });
  if (!file || !reread) return { reload: () => Promise.resolve(), stop: () => undefined };
  const reloader = new Reloader({
    versions,
    reread,
    admit: async (loaded) => {
      await checkFilterNames(loaded, app.get(FilterNames), log);
    },
    log,
  });
  const watch = new ConfigWatch(file, reloader);
  const { reload } = versions.current.config;
  watch.start(reload.watch ? reload.interval * 1000 : null);
  return { reload: () => watch.loadNow(), stop: () => watch.stop() };
}

/** Notifies clients of changes of tools and prompts from now on. Call it after those of the start are registered. */
export function followLists(app: INestApplicationContext): void {
  const prompts = app.get(PromptRegistry);
  const tools = app.get(PermittedTools);
  const ofVersions = app.get(ConfigVersions).changes.pipe(filter((change) => changesTools(change, tools)));
  app
    .get(Wire)
    .listChanges.follow(
      merge(
        merge(app.get(ToolRegistry).changes, ofVersions).pipe(map((): ChangingList => 'tools')),
        prompts.changes.pipe(map((): ChangingList => 'prompts')),
      ),
    );
}

/** Whether the tool list of any agent differs under the new version. */
function changesTools({ before, now }: VersionChange, tools: PermittedTools): boolean {
  const names = new Set([...before.agents.keys(), ...now.agents.keys()]);
  return [...names].some(
    (name) => shownTo(before.agents.get(name), tools) !== shownTo(now.agents.get(name), tools),
  );
}

/** The tools of the agent with that name; empty when it does not exist. */
function shownTo(definition: AgentDefinition | undefined, tools: PermittedTools): string {
  if (!definition) return '';
  const agent = new Agent({ definition, principal: 'nobody' });
  return JSON.stringify(tools.list({ agent }).map(({ name }) => name));
}
