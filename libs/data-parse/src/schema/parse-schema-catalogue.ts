import { SchemaCatalogue } from '#data';
import type { SchemaSnapshot } from '#policy';
import type { ParseConnection } from '../connection/parse-connection.js';
import { MASTER_KEY } from '../connection/parse-credentials.js';
import { parseServerFault } from '../connection/parse-faults.js';
import { schemasFromRest } from './rest-schema.js';

export interface ParseCatalogueOptions {
  /** Milliseconds after which a snapshot is renewed in the background. Default 30 000. */
  readonly maxAge?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

const READ_LIMITS = { maxTimeMS: 10_000 };

/** A snapshot that could not be renewed for this many ages is no longer served: permissions may have changed. */
const STALE_AGES = 10;

/** Classes and permissions as Parse Server tells them to the master key. One reading at a time, however many ask. */
export class ParseSchemaCatalogue extends SchemaCatalogue {
  private current: { readonly snapshot: SchemaSnapshot; readonly readAt: number } | null = null;
  private reading: Promise<SchemaSnapshot> | null = null;
  private readonly maxAge: number;
  private readonly now: () => number;

  constructor(
    private readonly connection: ParseConnection,
    options: ParseCatalogueOptions = {},
  ) {
    super();
    this.maxAge = options.maxAge ?? 30_000;
    this.now = options.now ?? (() => performance.now());
  }

  async snapshot(): Promise<SchemaSnapshot> {
    const age = this.current ? this.now() - this.current.readAt : Number.POSITIVE_INFINITY;
    if (!this.current || age > this.maxAge * STALE_AGES) return this.read();
    // The caller is served the old snapshot; a failed renewal is tried again by the next one.
    if (age > this.maxAge) this.read().catch(() => undefined);
    return this.current.snapshot;
  }

  invalidate(): void {
    this.current = null;
    this.reading = null;
  }

  private read(): Promise<SchemaSnapshot> {
    if (this.reading) return this.reading;
    const reading: Promise<SchemaSnapshot> = this.load()
      .then((snapshot) => {
        // A reading that began before an invalidation may have missed what it was about.
        if (this.reading === reading) this.current = { snapshot, readAt: this.now() };
        return snapshot;
      })
      .finally(() => {
        if (this.reading === reading) this.reading = null;
      });
    this.reading = reading;
    return reading;
  }

  private async load(): Promise<SchemaSnapshot> {
    const { results } = await this.connection.send(
      { credentials: MASTER_KEY, method: 'GET', path: '/schemas' },
      { ...READ_LIMITS, signal: new AbortController().signal },
    );
    if (!Array.isArray(results)) throw parseServerFault('failed', 'no list of classes in the answer');
    return schemasFromRest(results);
  }
}
