import type { Observable } from 'rxjs';

export const LIST_KINDS = ['tools', 'prompts', 'resources'] as const;
export type ListKind = (typeof LIST_KINDS)[number];

/** Tells that a list a client may have read has changed since, on whichever replica. */
export abstract class ListChanges {
  /** The lists whose changes are told: what the capabilities promise. */
  abstract readonly kinds: ReadonlySet<ListKind>;
  abstract readonly changes: Observable<ListKind>;
}
