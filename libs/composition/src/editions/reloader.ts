import { isDeepStrictEqual } from 'node:util';
import { oneLine } from '#audit';
import { ConfigError, type ConfigFault, type LoadedConfig } from '#config';
import type { Editions } from './editions.js';
import { needingRestart } from './needs-restart.js';

export interface ReloaderParts {
  readonly editions: Editions;
  /** @throws ConfigError */
  readonly reread: () => LoadedConfig;
  /** What else must hold before an edition is served, as at a start. @throws ConfigError */
  readonly admit: (loaded: LoadedConfig) => void | Promise<void>;
  readonly log: { warn(line: string): void };
}

/** `unsettled`: it changed while it was read, so it is as if nobody had looked. */
export type Reloaded = 'adopted' | 'unchanged' | 'refused' | 'unsettled';

/** Takes the configuration over as a whole or not at all: what has a fault or needs a restart changes nothing. */
export class Reloader {
  private running: Promise<unknown> = Promise.resolve();

  constructor(private readonly parts: ReloaderParts) {}

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
    const { editions, log } = this.parts;
    const { current } = editions;
    try {
      const loaded = this.parts.reread();
      if (!same()) return 'unsettled';
      const faults = needingRestart(current.config, loaded.config);
      if (faults.length > 0) return this.refused(faults);
      if (isDeepStrictEqual(loaded.config, current.config)) {
        editions.confirm();
        return 'unchanged';
      }
      await this.parts.admit(loaded);
      const { number, policy } = editions.adopt(loaded);
      log.warn(`[Reload] edition ${number} of the configuration is served, policy version ${policy.version}`);
      return 'adopted';
    } catch (error) {
      if (!same()) return 'unsettled';
      // Whatever it is, the edition that is served is whole.
      const cause = error instanceof Error ? error.message : String(error);
      return this.refused(error instanceof ConfigError ? error.faults : [{ path: '', message: cause }]);
    }
  }

  private refused(faults: readonly ConfigFault[]): 'refused' {
    const { editions, log } = this.parts;
    editions.refuse(faults);
    log.warn(`[Reload] the configuration is refused, edition ${editions.current.number} stays:`);
    for (const { path, message } of faults) log.warn(oneLine(`[Reload]   ${path || '(file)'}: ${message}`));
    return 'refused';
  }
}
