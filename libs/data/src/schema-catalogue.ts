import type { SchemaSnapshot } from '#policy';

/** What classes exist and how their fields are typed. */
export abstract class SchemaCatalogue {
  /** A recent snapshot; cheap, because it is cached and refreshed in the background. @throws StoreError */
  abstract snapshot(): Promise<SchemaSnapshot>;
  /** Reads anew at the next call: after a class was created or changed. */
  abstract invalidate(): void;
}
