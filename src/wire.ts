import { type INestApplicationContext, Logger, type Provider } from '@nestjs/common';
import { map, merge, Observable } from 'rxjs';
import { SessionStreams, type SharedState } from '#cluster';
import { PromptRegistry } from '#dispatcher';
import { type ChangingList, Wire } from '#streaming';
import { ToolRegistry } from '#tools';

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
  const ofPrompts = new Observable<void>((listener) => prompts.onChange(() => listener.next()));
  app
    .get(Wire)
    .listChanges.follow(
      merge(
        app.get(ToolRegistry).changes.pipe(map((): ChangingList => 'tools')),
        ofPrompts.pipe(map((): ChangingList => 'prompts')),
      ),
    );
}
