/** Why rows of a class are left out although the caller did not ask for that. */
export type LimitOrigin = 'tenant' | 'agent filter' | 'canonical filter' | 'row rights';

/**
 * Hears what the gates of one call decide, from the code that decides, as it decides. It cannot change a decision.
 * A rehearsed call carries one, and a served call whose trace is kept.
 */
export interface CallTrace {
  /** The gate let the call pass. @param subject the class it was asked about, where there is one */
  passed(gate: string, subject?: string): void;
  /** Every row read of the class must meet this. */
  limited(className: string, origin: LimitOrigin, where: Readonly<Record<string, unknown>>): void;
  /** What is done with these fields of the class, by path and in words. */
  masked(className: string, fields: ReadonlyMap<string, string>): void;
}
