import { type INestApplicationContext, Logger } from '@nestjs/common';
import { OperationLog } from '#audit';
import { FilterNames } from '#dispatcher';
import { McpEdge } from '#streaming';
import { checkFilterNames } from '../filter-names.js';
import type { LoadedService } from '../plugins/load-with-plugins.js';
import { warnOfPostures } from '../posture-warnings.js';
import { ConfigWatch } from './config-watch.js';
import { Editions } from './editions.js';
import { mustReturn } from './must-return.js';
import { Reloader } from './reloader.js';

/** A service whose configuration is read anew while it runs. */
export interface Following {
  /** Has the file read now, whether or not it looks changed. Never rejects. */
  reload(): Promise<void>;
  stop(): void;
}

/** What may be known of where a configuration came from; without both nothing is read anew. */
export type ReadableAgain = Partial<Pick<LoadedService, 'file' | 'reread'>>;

/** Serves what the file says, from now on. To be called once everything of the start is in place. */
export function followConfiguration(
  app: INestApplicationContext,
  { file, reread }: ReadableAgain,
): Following {
  const editions = app.get(Editions);
  const log = new Logger('Parley');
  editions.successions.subscribe((succession) => {
    const { now } = succession;
    app.get(OperationLog).resize(now.policy.switches.maxLogSize);
    app.get(McpEdge).endStreamsOf(mustReturn(succession));
    warnOfPostures(now, log, new Set());
  });
  if (!file || !reread) return { reload: () => Promise.resolve(), stop: () => undefined };
  const reloader = new Reloader({
    editions,
    reread,
    admit: async (loaded) => {
      await checkFilterNames(loaded, app.get(FilterNames), log);
    },
    log,
  });
  const watch = new ConfigWatch(file, reloader);
  const { reload } = editions.current.config;
  watch.start(reload.watch ? reload.interval * 1000 : null);
  return { reload: () => watch.loadNow(), stop: () => watch.stop() };
}
