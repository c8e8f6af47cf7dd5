import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Reloader } from './reloader.js';

/** What a file holds that cannot be read. */
const GONE = 'gone';

function digestOf(file: string): string {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('hex');
  } catch {
    return GONE;
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

  /** @param interval milliseconds; null looks only when told to */
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
    await this.load(digestOf(this.file));
  }

  private async lookOnce(): Promise<void> {
    const digest = digestOf(this.file);
    const settled = digest === this.candidate;
    this.candidate = digest === this.known ? null : digest;
    if (settled && this.candidate !== null) await this.load(digest);
  }

  private async load(digest: string): Promise<void> {
    const outcome = await this.reloader.reload(() => digestOf(this.file) === digest);
    this.candidate = null;
    if (outcome !== 'unsettled') this.known = digest;
  }
}
