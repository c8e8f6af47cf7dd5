import { catchError, defer, EMPTY, exhaustMap, filter, from, merge, type Observable, tap, timer } from 'rxjs';
import { CHANGED_SETS, type ChangeSets } from '#data';
import type { SharedState } from '#state';

/** Milliseconds after which a set is looked at again: who changed it may have ended before its message was sent. */
export const LOOK_INTERVAL = 60_000;

/** Emits whenever a change set has changed. */
export function watchSet(
  id: string,
  sets: Pick<ChangeSets, 'find'>,
  { bus }: Pick<SharedState, 'bus'>,
): Observable<unknown> {
  return defer(() => {
    /** The revision that was reported. Null: there is no set; undefined: not known yet. */
    let known: number | null | undefined;
    const look = async () => (await sets.find(id))?.revision ?? null;
    const reported = bus.messages(CHANGED_SETS).pipe(
      filter(({ set }) => set === id),
      tap(() => {
        look().then(
          (revision) => (known = revision),
          () => undefined,
        );
      }),
    );
    const seen = timer(0, LOOK_INTERVAL).pipe(
      exhaustMap(() => from(look()).pipe(catchError(() => EMPTY))),
      filter((revision) => {
        const before = known;
        known = revision;
        return before !== undefined && before !== revision;
      }),
    );
    return merge(reported, seen);
  });
}
