/** `fail`: the service would not start, not work, or not be safe; `warn`: an operator should decide. */
export type Level = 'ok' | 'warn' | 'fail';

/** The result of one check. */
export interface Finding {
  /** Stable name, such as `redis.eviction`. */
  readonly check: string;
  readonly level: Level;
  /** The result, in one line. */
  readonly found: string;
  /** The remedy, in one line; absent for ok. */
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
