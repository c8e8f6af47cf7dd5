/** `fail`: the service would not start, not work, or not be safe; `warn`: something an operator should decide on. */
export type Level = 'ok' | 'warn' | 'fail';

/** One thing that was looked at. */
export interface Finding {
  /** Stable name, such as `redis.eviction`. */
  readonly check: string;
  readonly level: Level;
  /** What was found, in one line. */
  readonly found: string;
  /** What to do about it, in one line; only of what is not ok. */
  readonly remedy?: string;
}

export const ok = (check: string, found: string): Finding => ({ check, level: 'ok', found });
export const warn = (check: string, found: string, remedy: string): Finding => ({
  check,
  level: 'warn',
  found,
  remedy,
});
export const fail = (check: string, found: string, remedy: string): Finding => ({
  check,
  level: 'fail',
  found,
  remedy,
});
