import type { Observable } from 'rxjs';

/** A row came, changed or went. Carries the row after the change in Parse form, when it still exists. */
export interface RowChange {
  readonly className: string;
  readonly objectId: string;
  readonly kind: 'create' | 'update' | 'delete';
  readonly row: Readonly<Record<string, unknown>> | null;
}

/** Changes of one class, from now on. Errors with StoreError when the source is lost for good. */
export abstract class ChangeFeed {
  /** Whether this store tells changes at all, as far as is known at this moment. */
  abstract readonly available: boolean;
  abstract changes(className: string): Observable<RowChange>;
  /**
   * Resolves once nothing that happens to the classes watched at this moment is missed any more.
   * @throws StoreError when the source is lost
   */
  abstract listening(): Promise<void>;
}
