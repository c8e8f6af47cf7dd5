import { isDeepStrictEqual } from 'node:util';
import { oneLine } from '#audit';
import { ConfigError, type ConfigIssue } from '../config-error.js';
import type { LoadedConfig } from '../load-config.js';
import type { ConfigVersions } from './config-versions.js';
import { needingRestart } from './version-effects.js';

export interface ReloaderDependencies {
  readonly versions: ConfigVersions;
  /** @throws ConfigError */
  readonly reread: () => LoadedConfig;
  /** What else must hold before a version is served, as at a start. @throws ConfigError */
  readonly admit: (loaded: LoadedConfig) => void | Promise<void>;
  readonly log: { warn(line: string): void };
}

/** `unsettled`: it changed while it was read, so it is as if nobody had looked. */
export type Reloaded = 'adopted' | 'unchanged' | 'refused' | 'unsettled';

/** Takes the configuration over as a whole or not at all: what has a fault or needs a restart changes nothing. */
export class Reloader {
  private running: Promise<unknown> = Promise.resolve();

  constructor(private readonly parts: ReloaderDependencies) {}

  /**
   * One at a time, in the order they were asked for. Never rejects.
   * @param same whether what was read is what there still is
   */
  reload(same: () => boolean = () => true): Promise<Reloaded> {
    const next = this.running.then(() => this.once(same));
    this.running = next;
    return next;
  }

  private async once(same: () => boolean): Promise<Reloaded> {
    const { versions, log } = this.parts;
    const { current } = versions;
    try {
      const loaded = this.parts.reread();
      if (!same()) return 'unsettled';
      const issues = needingRestart(current.config, loaded.config);
      if (issues.length > 0) return this.refused(issues);
      if (isDeepStrictEqual(loaded.config, current.config)) {
        versions.confirm();
        return 'unchanged';
      }
      await this.parts.admit(loaded);
      const { number, policy } = versions.adopt(loaded);
      log.warn(`[Reload] edition ${number} of the configuration is served, policy version ${policy.version}`);
      return 'adopted';
    } catch (error) {
      if (!same()) return 'unsettled';
      // Whatever failed, the version that is served is whole.
      const cause = error instanceof Error ? error.message : String(error);
      return this.refused(error instanceof ConfigError ? error.issues : [{ path: '', message: cause }]);
    }
  }

  private refused(issues: readonly ConfigIssue[]): 'refused' {
    const { versions, log } = this.parts;
    versions.refuse(issues);
    log.warn(`[Reload] the configuration is refused, edition ${versions.current.number} stays:`);
    for (const { path, message } of issues) log.warn(oneLine(`[Reload]   ${path || '(file)'}: ${message}`));
    return 'refused';
  }
}
