import { concat, defer, filter, finalize, map, type Observable, of, Subject } from 'rxjs';
import { invalidParams } from '../protocol-fault.js';
import type { DispatchContext } from '../dispatch-context.js';
import { type ListenEvent, ResourceSubscriptions } from '../resource-subscriptions.js';

/** Subscriptions to addresses under `known://`, by session, with changes made by hand. */
export class SmallSubscriptions extends ResourceSubscriptions {
  supported = true;
  /** Streams that listen at this moment. */
  listening = 0;
  readonly sessions = new Map<string, Set<string>>();
  private readonly changes = new Subject<string>();

  change(uri: string): void {
    this.changes.next(uri);
  }

  async subscribe(uri: string, { sessionId }: DispatchContext): Promise<boolean> {
    if (!uri.startsWith('known://')) throw invalidParams(`Invalid resource URI: ${uri}`);
    if (sessionId === undefined) return false;
    this.sessions.set(sessionId, (this.sessions.get(sessionId) ?? new Set()).add(uri));
    return true;
  }

  async unsubscribe(uri: string, { sessionId }: DispatchContext): Promise<void> {
    this.sessions.get(sessionId ?? '')?.delete(uri);
  }

  listen(uris: readonly string[]): Observable<ListenEvent> {
    const watched = uris.filter((uri) => uri.startsWith('known://'));
    return defer(() => {
      this.listening += 1;
      const updates = this.changes.pipe(
        filter((uri) => watched.includes(uri)),
        map((updated) => ({ updated })),
      );
      return concat(of({ watched }), updates).pipe(finalize(() => (this.listening -= 1)));
    });
  }
}
