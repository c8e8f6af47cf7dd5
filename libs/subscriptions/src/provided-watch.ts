import {
  asyncScheduler,
  defer,
  dematerialize,
  map,
  materialize,
  type Observable,
  startWith,
  switchMap,
  throttleTime,
} from 'rxjs';
import type { WatcherEvents, WatchHandle } from './watcher.js';

/** A resource whose provider tells by itself, for one agent, when it has changed. */
export interface ProvidedResource {
  readonly uri: string;
  readonly changes: Observable<unknown>;
}

/** What the provider tells, asked anew at each renewal; it ends when that ends, or when `again` throws. */
export function renewed(
  first: Observable<unknown>,
  renewals: Observable<unknown>,
  again: () => Observable<unknown>,
): Observable<unknown> {
  return renewals.pipe(
    map(() => defer(again)),
    startWith(first),
    switchMap((changes) => changes.pipe(materialize())),
    dematerialize(),
  );
}

/** @param debounce milliseconds; changes within it are told once, at its end */
export function watchProvided(
  { uri, changes }: ProvidedResource,
  debounce: number,
  events: WatcherEvents,
): WatchHandle {
  const gathered =
    debounce > 0
      ? changes.pipe(throttleTime(debounce, asyncScheduler, { leading: false, trailing: true }))
      : changes;
  const subscription = gathered.subscribe({
    next: () => events.updated(uri),
    error: () => events.ended(uri),
    complete: () => events.ended(uri),
  });
  return { close: () => subscription.unsubscribe() };
}
