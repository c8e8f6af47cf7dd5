interface Canary {
  readonly phrase: string;
  isIn(text: string, lowered: string): boolean;
}

/** Tells which operator phrase a serialised result contains, or null. */
export type CanaryScan = (serialized: string) => string | null;

const WRITTEN_PATTERN = /^\/(.+)\/([imsu]*)$/s;

function patternCanary(phrase: string, pattern: RegExp): Canary {
  // A global or sticky pattern remembers where it stopped and would miss every other hit.
  const stateless = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
  return { phrase, isIn: (text) => stateless.test(text) };
}

function canary(entry: string | RegExp): Canary {
  if (entry instanceof RegExp) return patternCanary(String(entry), entry);
  if (entry.trim() === '') throw new TypeError('promptInjectionCanaries: a phrase must not be blank');
  const written = WRITTEN_PATTERN.exec(entry);
  if (written) return patternCanary(entry, new RegExp(written[1] as string, written[2]));
  // Results are scanned as JSON text, where quotes, backslashes and line breaks are escaped.
  const needle = JSON.stringify(entry).slice(1, -1).toLowerCase();
  return { phrase: entry, isIn: (_, lowered) => lowered.includes(needle) };
}

/**
 * A scan for phrases (found in any case) and patterns (`/source/flags` or regular expressions). None means no scan.
 * @throws TypeError for a blank phrase, SyntaxError for a pattern that does not compile
 */
export function compileCanaries(entries: readonly (string | RegExp)[]): CanaryScan {
  const canaries = entries.map(canary);
  if (canaries.length === 0) return () => null;
  return (text) => {
    const lowered = text.toLowerCase();
    return canaries.find((known) => known.isIn(text, lowered))?.phrase ?? null;
  };
}
