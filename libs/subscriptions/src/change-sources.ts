import { Observable, retry, timer } from 'rxjs';
import { type ChangeFeed, ChangeSource, SourceRefused, StoreError, type SourceEvent } from '#data';

/** The sources of row changes, the preferred source first. The adapters of the stores provide them. */
export abstract class ChangeSources {
  abstract readonly preferred: readonly ChangeSource[];
  abstract close(): void;
}

/** Milliseconds before a lost feed is watched again; doubles up to the longest. */
const FIRST_DELAY = 200;
const LONGEST_DELAY = 10_000;

/**
 * Changes of the database itself, for every row of the class: the view of each watcher decides which of them are reported.
 * One watch serves all watchers, whatever their rights.
 */
export class FeedSource extends ChangeSource {
  constructor(private readonly feed: ChangeFeed) {
    super();
  }

  get available(): boolean {
    return this.feed.available;
  }

  channel(_agent: unknown, { className }: { readonly className: string }): string {
    return `feed ${className}`;
  }

  /** A lost feed is watched again, and the time in between is reported as a gap. A feed that never began is refused. */
  news(_agent: unknown, { className }: { readonly className: string }): Observable<SourceEvent> {
    let begun = false;
    const watch = new Observable<SourceEvent>((subscriber) => {
      const changes = this.feed.changes(className).subscribe({
        next: ({ objectId, kind }) =>
          subscriber.next({ kind: 'change', objectId, created: kind === 'create' }),
        error: (error: unknown) => subscriber.error(error),
      });
      this.feed.listening().then(
        () => {
          const kind = begun ? 'gap' : 'listening';
          begun = true;
          subscriber.next({ kind });
        },
        (error: unknown) => subscriber.error(error),
      );
      return changes;
    });
    return watch.pipe(
      retry({
        resetOnSuccess: true,
        delay: (error: unknown, attempt) => {
          const hopeless = error instanceof StoreError && error.code === 'unsupported';
          if (hopeless || !begun) throw new SourceRefused(error);
          return timer(Math.min(FIRST_DELAY * 2 ** Math.min(attempt - 1, 10), LONGEST_DELAY));
        },
      }),
    );
  }
}
