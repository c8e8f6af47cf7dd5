import type { Observable } from 'rxjs';
import type { Agent } from '#agent';
import type { RowView } from './row-view.js';

/**
 * `listening`: nothing is missed from here on. `gap`: something may have been missed. `change`: a row came, changed or went;
 * whether it is the agent's to know is for a `RowView` to say.
 */
export type SourceNews =
  | { readonly kind: 'listening' }
  | { readonly kind: 'gap' }
  | { readonly kind: 'change'; readonly objectId: string; readonly created: boolean };

/** A source will not tell this caller about this class, whatever was tried. */
export class SourceRefused extends Error {
  override readonly name = 'SourceRefused';
  /** @param cause for the log alone */
  constructor(override readonly cause?: unknown) {
    super('the source of changes refuses this caller');
  }
}

/** News of one class for one agent: hints that cost nothing, and prove nothing. */
export abstract class ChangeSource {
  /** Whether it can be used at this moment, as far as is known. */
  abstract readonly available: boolean;
  /** Equal for callers whom one watch may serve. Null: this source cannot carry the agent's rights, or its limits. */
  abstract channel(agent: Agent, view: RowView): string | null;
  /**
   * Cold; it survives outages by itself. `listening` comes first, once.
   * @throws SourceRefused through the observable
   */
  abstract news(agent: Agent, view: RowView): Observable<SourceNews>;
}
