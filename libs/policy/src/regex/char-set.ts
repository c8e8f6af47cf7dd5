const ASCII = 128;
/** Stands for every character outside ASCII. */
const WIDE = ASCII;
/** A body holds thousands of patterns made of few ranges; there are no more than 129² of them. */
const RANGES = new Map<number, CharSet>();

/** Which characters a pattern may begin with; letters count in both cases, so that `$options: "i"` changes nothing. */
export class CharSet {
  static readonly NONE = new CharSet(new Set());
  static readonly ALL = new CharSet(new Set(Array.from({ length: ASCII + 1 }, (_, code) => code)));

  private constructor(private readonly codes: ReadonlySet<number>) {}

  static of(character: string): CharSet {
    return CharSet.range(character, character);
  }

  static range(from: string, to: string): CharSet {
    const [first, last] = [from, to].map((end) => Math.min(end.charCodeAt(0), WIDE)) as [number, number];
    const key = first * (WIDE + 1) + last;
    const known = RANGES.get(key) ?? CharSet.between(first, last);
    RANGES.set(key, known);
    return known;
  }

  private static between(first: number, last: number): CharSet {
    const codes = new Set<number>();
    for (let code = first; code <= last; code += 1) {
      if (code === WIDE) codes.add(WIDE);
      else for (const folded of bothCases(code)) codes.add(folded);
    }
    return new CharSet(codes);
  }

  /** The set behind `\d`, `\w`, `\s`, their opposites, or the escaped character itself. */
  static ofEscape(letter: string): CharSet {
    const known = ESCAPES[letter];
    if (known) return known();
    // \p, \x, \o, \0, \c, \N, \R, \X: rather too much than too little.
    return /[A-Za-z0-9]/.test(letter) ? CharSet.ALL : CharSet.of(letter);
  }

  static union(sets: readonly CharSet[]): CharSet {
    const codes = new Set<number>();
    for (const set of sets) for (const code of set.codes) codes.add(code);
    return new CharSet(codes);
  }

  complement(): CharSet {
    const codes = new Set<number>([WIDE]);
    for (let code = 0; code < ASCII; code += 1) {
      // A letter stays in when one of its cases does: the set may only be too large.
      if (!bothCases(code).every((folded) => this.codes.has(folded))) codes.add(code);
    }
    return new CharSet(codes);
  }

  overlaps(other: CharSet): boolean {
    for (const code of this.codes) if (other.codes.has(code)) return true;
    return false;
  }
}

function bothCases(code: number): number[] {
  const character = String.fromCharCode(code);
  return [character.toLowerCase().charCodeAt(0), character.toUpperCase().charCodeAt(0)];
}

const ESCAPES: Readonly<Record<string, () => CharSet>> = {
  d: () => CharSet.range('0', '9'),
  D: () => CharSet.range('0', '9').complement(),
  w: () =>
    CharSet.union([CharSet.range('a', 'z'), CharSet.range('0', '9'), CharSet.of('_'), CharSet.of('\u0080')]),
  W: () => CharSet.union([CharSet.range('a', 'z'), CharSet.range('0', '9'), CharSet.of('_')]).complement(),
  s: () => CharSet.union([CharSet.range('\t', '\r'), CharSet.of(' '), CharSet.range('\u0080', '\u0080')]),
  S: () => CharSet.range('\t', '\r').complement(),
  n: () => CharSet.of('\n'),
  r: () => CharSet.of('\r'),
  t: () => CharSet.of('\t'),
};
