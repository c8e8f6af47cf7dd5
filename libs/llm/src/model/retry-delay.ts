/** Seconds that are waited for a server that names them; one that asks for more is not asked again. */
const MOST = 60;
const FIRST = 0.5;

/**
 * Seconds until a request is repeated: what the server asked for, else twice as long each time, spread so that many clients
 * do not come back at once.
 * @returns null when the server wants to be left alone for longer than anybody waits
 */
export function retryDelay(attempt: number, asked: number | undefined, random = Math.random): number | null {
  if (asked !== undefined) return asked > MOST ? null : asked;
  return Math.min(MOST, FIRST * 2 ** attempt * (0.5 + random()));
}
