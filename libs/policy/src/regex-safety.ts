import { Fault, PatternReader, type RegexFault } from './regex/pattern-reader.js';

/** A coarse rule in front of the reading: it also refuses `(a+)?`, where the reading sees nothing wrong. */
const NESTED_QUANTIFIER = /\([^)]*[+*][^)]*\)[+*?]/;

/** The pattern as the `x` option reads it: blanks and comments outside classes do not count. */
function withoutBlanks(pattern: string): string {
  return pattern.replace(
    /(\\[^])|(\[\^?\]?(?:\\[^]|[^\]\\])*\])|\s|#[^\n]*/g,
    (_, escaped: string | undefined, characterClass: string | undefined) => escaped ?? characterClass ?? '',
  );
}

/**
 * What is wrong with a pattern, or null. Refuses every repeat of something that can itself be repeated in several ways.
 * @param options the regex options it will run with; `x` changes how it is read
 */
export function regexFault(pattern: string, options = ''): RegexFault | null {
  if (pattern.includes('\0')) return 'invalid_regex';
  const read = options.includes('x') ? withoutBlanks(pattern) : pattern;
  if (NESTED_QUANTIFIER.test(read)) return 'regex_redos';
  try {
    new PatternReader(read).read();
    return null;
  } catch (error) {
    if (error instanceof Fault) return error.fault;
    throw error;
  }
}
