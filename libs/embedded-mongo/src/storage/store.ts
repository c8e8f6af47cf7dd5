import { ChangeLog } from '../feed/change-log.js';
import { Catalog } from './catalog.js';
import type { Change, ChangeOrigin, ChangeSink } from './change.js';
import type { Journal } from './journal.js';
import { LiveWorkspace } from './workspace.js';

/** How many bytes of recent changes are kept for change streams. */
const DEFAULT_LOG_BYTES = 32 * 1024 * 1024;

/** All stored data with its change log and, when a file is given, its journal. */
export class DocumentStore implements ChangeSink {
  readonly catalog: Catalog;
  readonly log: ChangeLog;
  readonly live: LiveWorkspace;

  constructor(
    private readonly journal: Journal | undefined,
    catalog: Catalog = new Catalog(),
    logBytes = DEFAULT_LOG_BYTES,
  ) {
    this.catalog = catalog;
    this.log = new ChangeLog(logBytes);
    this.live = new LiveWorkspace(catalog, this);
  }

  get persistent(): boolean {
    return this.journal !== undefined;
  }

  publish(changes: readonly Change[], origin?: ChangeOrigin): void {
    this.journal?.append(changes);
    this.log.append(changes, origin);
  }

  /** Waits until everything published is on disk; at once without a journal. */
  async sync(): Promise<void> {
    await this.journal?.sync();
  }

  /** Waits until what was published may be answered (`fsync`). Errors: those of the file system. */
  async settle(): Promise<void> {
    await this.journal?.settle();
  }

  async close(): Promise<void> {
    await this.journal?.close();
  }
}
