import { type INestApplicationContext, Logger, type Provider } from '@nestjs/common';
import { filter, map, merge } from 'rxjs';
import { SessionStreams, type SharedState } from '#cluster';
import { PromptRegistry } from '#dispatcher';
import { type ChangingList, Wire } from '#streaming';
import { PermittedTools, ToolRegistry } from '#tools';
import { changesTools } from './editions/changed-lists.js';
import { Editions } from './editions/editions.js';

/** What goes on between clients and calls besides request and answer. */
export function wireProviders(state: SharedState): Provider[] {
  return [
    { provide: Wire, useFactory: () => new Wire({ state, log: new Logger('Wire') }) },
    { provide: SessionStreams, useFactory: (wire: Wire) => wire.listening, inject: [Wire] },
  ];
}

/** From now on clients hear when tools or prompts come and go; to be called when those of the start are in place. */
export function followLists(app: INestApplicationContext): void {
  const prompts = app.get(PromptRegistry);
  const tools = app.get(PermittedTools);
  const ofEditions = app
    .get(Editions)
    .successions.pipe(filter((succession) => changesTools(succession, tools)));
  app
    .get(Wire)
    .listChanges.follow(
      merge(
        merge(app.get(ToolRegistry).changes, ofEditions).pipe(map((): ChangingList => 'tools')),
        prompts.changes.pipe(map((): ChangingList => 'prompts')),
      ),
    );
}
