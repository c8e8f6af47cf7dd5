import { type INestApplicationContext, Logger } from '@nestjs/common';
import { AuditSink, OperationLog } from '#audit';
import {
  computeDigest,
  ConfigVersions,
  ConfigWatch,
  logSecurityWarnings,
  mustReturn,
  recordAdopted,
  Reloader,
} from '#config';
import { SchemaCatalogue } from '#data';
import { MongoConnection } from '#data-mongo';
import { FilterNames } from '#dispatcher';
import { McpEdge } from '#streaming';
import { checkFilterNames, warnOfNoClasses } from './agent-names.js';
import { ReloadedDatabases } from './data/reloaded-databases.js';
import type { LoadedService } from './plugins.js';

/** A service that can reload its configuration at run time. */
export interface ConfigurationReload {
  /** Reads the file now, even if it looks unchanged. Never rejects. */
  reload(): Promise<void>;
  stop(): void;
}

/** The origin of a configuration; without its members nothing is reloaded. */
export type ReadableAgain = Partial<
  Pick<LoadedService, 'file' | 'reread' | 'locate' | 'rehearse' | 'recall'>
>;

/** Starts to follow the configuration file. Call it at the end of a start. */
export function followConfiguration(
  app: INestApplicationContext,
  { file, reread, locate }: ReadableAgain,
): ConfigurationReload {
  const versions = app.get(ConfigVersions);
  const audit = app.get(AuditSink);
  const log = new Logger('Parley');
  const digest = !file ? null : computeDigest(file);
  audit.recordEvent(recordAdopted(versions.current, null, { by: 'start', digest }));
  const databases = new ReloadedDatabases(app.get(MongoConnection), versions.current.config);
  versions.changes.subscribe((change) => {
    const { now } = change;
    if (databases.adopt(now.config)) app.get<SchemaCatalogue>(SchemaCatalogue).invalidate();
    app.get(OperationLog).resize(now.policy.switches.maxLogSize);
    app.get(McpEdge).endStreamsWhere(mustReturn(change));
    logSecurityWarnings({ ...now, ...(locate && { locate }) }, log, new Set());
    warnOfNoClasses(now.policy, log);
  });
  if (!file || !reread || !locate) return { reload: () => Promise.resolve(), stop: () => undefined };
  const reloader = new Reloader({
    versions,
    reread,
    locate,
    admit: async (loaded) => {
      await checkFilterNames(loaded, app.get(FilterNames), log, locate);
      databases.prepare(loaded.config);
    },
    audit,
    log,
  });
  const watch = new ConfigWatch(file, reloader);
  const { reload } = versions.current.config;
  watch.start(reload.watch ? reload.interval * 1000 : null);
  return { reload: () => watch.loadNow(), stop: () => watch.stop() };
}
