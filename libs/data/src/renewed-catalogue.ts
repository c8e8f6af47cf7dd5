import type { SchemaSnapshot } from '#policy';
import { SchemaCatalogue } from './schema-catalogue.js';

export interface CatalogueOptions {
  /** Milliseconds after which a snapshot is renewed in the background. Default 30 000. */
  readonly maxAge?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

/** A snapshot that could not be renewed for this many ages is no longer served: permissions may have changed. */
const STALE_AGES = 10;

/** When a snapshot is read anew, for every source of classes alike. One reading at a time, however many ask. */
export abstract class RenewedCatalogue extends SchemaCatalogue {
  private current: { readonly snapshot: SchemaSnapshot; readonly readAt: number } | null = null;
  private reading: Promise<SchemaSnapshot> | null = null;
  private readonly maxAge: number;
  private readonly now: () => number;

  constructor({ maxAge = 30_000, now = () => performance.now() }: CatalogueOptions = {}) {
    super();
    this.maxAge = maxAge;
    this.now = now;
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

  /** Reads the classes from where they are kept. @throws StoreError */
  protected abstract load(): Promise<SchemaSnapshot>;

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
}
