import { catchError, concatMap, defer, EMPTY, filter, from, map, merge, type Observable, timer } from 'rxjs';
import { type Agent, isSameOwner, toOwner } from '#core';
import { CHANGED_SETS, type ChangeSets } from '#data';
import type { SharedState } from '#state';

/** Milliseconds after which a set is looked at again: who changed it may have ended before its message was sent. */
export const LOOK_INTERVAL = 60_000;

/** Emits whenever a change set of the agent's caller has changed: to anybody else there is no such set. */
export function watchSet(
  id: string,
  agent: Agent,
  sets: Pick<ChangeSets, 'find'>,
  { bus }: Pick<SharedState, 'bus'>,
): Observable<unknown> {
  return defer(() => {
    /** The revision of the last look. Null: there is no set; undefined: not known yet. */
    let known: number | null | undefined;
    const look = async () => {
      const set = await sets.find(id);
      return set && isSameOwner(set.owner, toOwner(agent)) ? set.revision : null;
    };
    const reported = bus.messages(CHANGED_SETS).pipe(
      filter(({ set }) => set === id),
      map(() => true),
    );
    return merge(reported, timer(0, LOOK_INTERVAL).pipe(map(() => false))).pipe(
      concatMap((isReported) =>
        from(look()).pipe(
          map((revision) => ({ isReported, revision })),
          catchError(() => EMPTY),
        ),
      ),
      filter(({ isReported, revision }) => {
        const before = known;
        known = revision;
        return isReported
          ? revision !== null || typeof before === 'number'
          : before !== undefined && before !== revision;
      }),
    );
  });
}
