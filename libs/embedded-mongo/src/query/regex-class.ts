/** Character classes and single characters of a translated pattern, case folded where asked. */

const posix: Readonly<Record<string, string>> = {
  alpha: 'a-zA-Z',
  digit: '0-9',
  alnum: 'a-zA-Z0-9',
  upper: 'A-Z',
  lower: 'a-z',
  space: ' \\t-\\r',
  blank: ' \\t',
  punct: '!-\\/:-@\\[-`{-~',
  xdigit: '0-9A-Fa-f',
  word: '\\w',
  cntrl: '\\x00-\\x1f\\x7f',
  print: ' -~',
  graph: '!-~',
};

/** The members of `[:name:]`, or undefined for an unknown name. */
export const posixClass = (name: string): string | undefined =>
  Object.hasOwn(posix, name) ? posix[name] : undefined;

/** `\d`, `\w`, `\s` and their opposites: spaces are those of ASCII alone, unlike JavaScript's. */
export const perlClass = (letter: string): string =>
  letter === 's' ? ' \\t-\\r' : letter === 'S' ? `\\S${wideSpace}` : `\\${letter}`;

const wideSpace = '\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff';
export const horizontalSpace = '\\t \\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000';
export const verticalSpace = '\\n\\x0b\\f\\r\\x85\\u2028\\u2029';

/** A character written so that neither a class nor a sequence reads it as syntax. */
export function escapeCharacter(code: number): string {
  if (code > 0xffff) {
    const pair = String.fromCodePoint(code);
    return escapeCharacter(pair.charCodeAt(0)) + escapeCharacter(pair.charCodeAt(1));
  }
  const text = String.fromCharCode(code);
  if (/[A-Za-z0-9_ ]/.test(text)) return text;
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** The other cases of a character, so that folding needs no engine flag. */
export function caseVariants(code: number): number[] {
  const text = String.fromCodePoint(code);
  const found = new Set([code]);
  for (const other of [text.toLowerCase(), text.toUpperCase()]) {
    const point = other.codePointAt(0);
    if (point !== undefined && String.fromCodePoint(point) === other) found.add(point);
  }
  return [...found];
}

/** A single character as an atom. */
export function characterAtom(code: number, foldCase: boolean): string {
  const variants = foldCase ? caseVariants(code) : [code];
  if (variants.length === 1) return code > 0xffff ? `(?:${escapeCharacter(code)})` : escapeCharacter(code);
  if (variants.some((variant) => variant > 0xffff)) return `(?:${variants.map(escapeCharacter).join('|')})`;
  return `[${variants.map(escapeCharacter).join('')}]`;
}

/** A range inside a class with the other cases of its members. */
export function foldRange(from: number, to: number): string {
  const plain = `${escapeCharacter(from)}-${escapeCharacter(to)}`;
  // A range this wide covers both cases of the scripts inside it.
  if (to - from > 0x800) return plain;
  const extra = new Set<number>();
  for (let code = from; code <= to; code++) {
    for (const variant of caseVariants(code)) if (variant < from || variant > to) extra.add(variant);
  }
  return plain + [...extra].map(escapeCharacter).join('');
}
