import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { type AuditSink, oneLine } from '#audit';
import { ConfigError, type ConfigIssue, describeIssue } from '../config-error.js';
import { databaseSections, type ParleyConfig } from '../config.js';
import type { LoadedConfig } from '../load-config.js';
import type { AuthRuleConfig } from '../sections/auth.js';
import type { ConfigVersions } from './config-versions.js';
import { type ConfigurationOrigin, recordAdopted, recordRefused } from './configuration-record.js';
import { isJsonObject } from '#core';

export interface ReloaderDependencies {
  readonly versions: ConfigVersions;
  /** @throws ConfigError */
  readonly reread: () => LoadedConfig;
  /** Says of issues where the file has what they are about. */
  readonly locate: (issues: readonly ConfigIssue[]) => readonly ConfigIssue[];
  /** What else must hold before a version is served, as at a start. @throws ConfigError */
  readonly admit: (loaded: LoadedConfig) => void | Promise<void>;
  readonly audit: Pick<AuditSink, 'recordEvent'>;
  readonly log: { log(line: string): void; warn(line: string): void };
}

/** A reading of the file, and whether it still holds what was read. */
export interface FileReading extends ConfigurationOrigin {
  isSame(): boolean;
}

/** `unsettled`: it changed while it was read, so it is as if nobody had looked. */
export type Reloaded = 'adopted' | 'unchanged' | 'refused' | 'unsettled';

/** Takes the configuration over as a whole or not at all: a change that has an error or needs a restart changes nothing. */
export class Reloader {
  private running: Promise<unknown> = Promise.resolve();

  constructor(private readonly parts: ReloaderDependencies) {}

  /** One at a time, in the order they were asked for. Never rejects. */
  reload(reading: FileReading): Promise<Reloaded> {
    const next = this.running.then(() => this.once(reading));
    this.running = next;
    return next;
  }

  private async once(reading: FileReading): Promise<Reloaded> {
    const { versions, audit, log } = this.parts;
    const { current } = versions;
    try {
      const loaded = this.parts.reread();
      if (!reading.isSame()) return 'unsettled';
      const issues = listNeedingRestart(current.config, loaded.config);
      if (issues.length > 0) return this.reportRefused(issues, reading);
      if (isDeepStrictEqual(loaded.config, current.config)) {
        versions.confirm();
        return 'unchanged';
      }
      await this.parts.admit(loaded);
      const now = versions.adopt(loaded);
      audit.recordEvent(recordAdopted(now, current, reading));
      log.log(`[Reload] configuration version ${now.number} is served, policy version ${now.policy.version}`);
      return 'adopted';
    } catch (error) {
      if (!reading.isSame()) return 'unsettled';
      // Whatever failed, the version that is served is whole.
      const cause = error instanceof Error ? error.message : String(error);
      const issues = error instanceof ConfigError ? error.issues : [{ path: '', message: cause }];
      return this.reportRefused(issues, reading);
    }
  }

  private reportRefused(found: readonly ConfigIssue[], reading: FileReading): 'refused' {
    const { versions, audit, locate, log } = this.parts;
    const issues = locate(found);
    versions.refuse(issues);
    audit.recordEvent(recordRefused(versions.current, issues, reading));
    log.warn(`[Reload] the configuration is refused, version ${versions.current.number} stays:`);
    for (const issue of issues) log.warn(oneLine(`[Reload]   ${describeIssue(issue)}`));
    return 'refused';
  }
}

export const NEEDS_RESTART = 'has changed, which needs a restart';

/** What a new version of the configuration brings along; everything else was built when the process started. */
const RELOADED_SECTIONS: ReadonlySet<string> = new Set<keyof ParleyConfig>(['policy', 'agents', 'auth']);

type Section = Readonly<Record<string, unknown>>;

const admitsAnonymous = (rules: readonly AuthRuleConfig[]) => rules.some((rule) => 'anonymous' in rule);

/** The options that differ and that a running service cannot take over. Their values are not named: some are secrets. */
export function listNeedingRestart(running: ParleyConfig, read: ParleyConfig): ConfigIssue[] {
  const issues = listChanged(sectionsOf(running), sectionsOf(read), '').filter(
    ({ path }) =>
      !RELOADED_SECTIONS.has(root(path)) &&
      !isFurther(path, running, read) &&
      !isOfOpenConsole(path, running, read),
  );
  // Whether browsers of this machine are let in was decided by it.
  if (admitsAnonymous(running.auth) !== admitsAnonymous(read.auth))
    issues.push({ path: 'auth', message: `whether there is an anonymous rule ${NEEDS_RESTART}` });
  return issues;
}

/** Databases beside the first one are added, changed and removed. */
function isFurther(path: string, ...configs: readonly ParleyConfig[]): boolean {
  const [section, label = ''] = path.split('.');
  return section === 'databases' && configs.every(({ databaseName }) => databaseName !== label);
}

/** Who the operators are is read with every request. Whether there is a console was decided at the start. */
function isOfOpenConsole(path: string, ...configs: readonly ParleyConfig[]): boolean {
  return path === 'console.operators' && configs.every(({ console }) => Array.isArray(console.operators));
}

/** By the names that a file has for them. */
function sectionsOf({ database, databaseName, furtherDatabases, ...others }: ParleyConfig): Section {
  return { ...others, ...databaseSections({ database, databaseName, furtherDatabases }) };
}

const root = (path: string) => path.split('.', 1)[0] as string;

/** Down to the second level, which is where options are. */
function listChanged(before: Section, after: Section, prefix: string): ConfigIssue[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const [one, other] = [before[name], after[name]];
    if (isDeepStrictEqual(one, other)) return [];
    const path = `${prefix}${name}`;
    return prefix === '' && isJsonObject(one) && isJsonObject(other)
      ? listChanged(one, other, `${path}.`)
      : [{ path, message: NEEDS_RESTART }];
  });
}

/** What a file holds that cannot be read. */
const UNREADABLE_FILE = 'gone';

/** SHA-256 of a file. */
export function computeDigest(file: string): string {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('hex');
  } catch {
    return UNREADABLE_FILE;
  }
}

/**
 * Looks again and again whether a file holds something else, by its path alone: however it was replaced. One that is being
 * written is not read, because half a policy could permit more than the whole one: it must be the same at two looks.
 */
export class ConfigWatch {
  private timer: NodeJS.Timeout | null = null;
  private looking: Promise<void> | null = null;
  /** What was read last, whether or not it could be used. Null: it may have changed since the start read it. */
  private known: string | null = null;
  private candidate: string | null = null;

  constructor(
    private readonly file: string,
    private readonly reloader: Pick<Reloader, 'reload'>,
  ) {}

  /** @param interval milliseconds; null looks only on request */
  start(interval: number | null): void {
    if (interval !== null) this.timer = setInterval(() => void this.look(), interval).unref();
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  /** Has read what was the same at the last look, if that is news. */
  look(): Promise<void> {
    this.looking ??= this.lookOnce().finally(() => (this.looking = null));
    return this.looking;
  }

  /** Has read what there is, at once: somebody says that it is complete. */
  async loadNow(): Promise<void> {
    await this.looking;
    await this.load(computeDigest(this.file), 'request');
  }

  private async lookOnce(): Promise<void> {
    const digest = computeDigest(this.file);
    const settled = digest === this.candidate;
    this.candidate = digest === this.known ? null : digest;
    if (settled && this.candidate !== null) await this.load(digest, 'file');
  }

  private async load(digest: string, by: ConfigurationOrigin['by']): Promise<void> {
    const isSame = () => computeDigest(this.file) === digest;
    const outcome = await this.reloader.reload({ by, digest, isSame });
    this.candidate = null;
    if (outcome !== 'unsettled') this.known = digest;
  }
}
