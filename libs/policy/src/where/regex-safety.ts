/** A coarse check before the parser: it also refuses `(a+)?`, which the parser accepts. */
const NESTED_QUANTIFIER = /\([^)]*[+*][^)]*\)[+*?]/;

/** The pattern under the `x` option: without blanks and comments outside character classes. */
function withoutBlanks(pattern: string): string {
  return pattern.replace(
    /(\\[^])|(\[\^?\]?(?:\\[^]|[^\]\\])*\])|\s|#[^\n]*/g,
    (_, escaped: string | undefined, characterClass: string | undefined) => escaped ?? characterClass ?? '',
  );
}

/**
 * Why a pattern is refused; null when it is safe. Refuses every repeat of a part that can itself match in several ways.
 * @param options the regex options of the query; `x` changes the syntax
 */
export function regexIssue(pattern: string, options = ''): RegexIssue | null {
  if (pattern.includes('\0')) return 'invalid_regex';
  const read = options.includes('x') ? withoutBlanks(pattern) : pattern;
  if (NESTED_QUANTIFIER.test(read)) return 'regex_redos';
  try {
    new PatternReader(read).read();
    return null;
  } catch (error) {
    if (error instanceof UnsafePattern) return error.issue;
    throw error;
  }
}

/** What a refusal says of a pattern that cannot be read. */
export const NO_PATTERN =
  "'$regex' is not a pattern that can be used: look for a bracket that is not closed, and for * + ? without a character before it";

type RegexIssue = 'invalid_regex' | 'regex_redos';

/** Unbounded repeats per pattern: each can multiply the work of the others. */
const MAX_UNBOUNDED = 10;
const MAX_BOUND = 1000;

interface Quantifier {
  readonly min: number;
  readonly max: number;
}

interface Piece {
  /** The possible first characters of a match. */
  readonly first: CharSet;
  readonly nullable: boolean;
  /** Whether a part inside may repeat a varying number of times. */
  readonly varies: boolean;
  /** Whether two alternatives may start alike, so that a repeat of them can match in many ways. */
  readonly ambiguous: boolean;
}

/** Ends parsing with the reason for the refusal. */
class UnsafePattern extends Error {
  constructor(readonly issue: RegexIssue) {
    super(issue);
  }
}

/** Parses a PCRE pattern as far as needed to find nested repeats. */
class PatternReader {
  private at = 0;
  private unbounded = 0;

  constructor(private readonly pattern: string) {}

  /** @throws UnsafePattern */
  read(): void {
    this.alternatives();
    if (this.at < this.pattern.length) throw new UnsafePattern('invalid_regex');
  }

  private alternatives(): Piece {
    const branches = [this.sequence()];
    while (this.take('|')) branches.push(this.sequence());
    const overlap = branches.some(
      (branch, i) =>
        branches.length > 1 &&
        (branch.nullable || branches.slice(i + 1).some((other) => branch.first.overlaps(other.first))),
    );
    return {
      first: CharSet.union(branches.map((branch) => branch.first)),
      nullable: branches.some((branch) => branch.nullable),
      varies: branches.some((branch) => branch.varies),
      ambiguous: overlap || branches.some((branch) => branch.ambiguous),
    };
  }

  private sequence(): Piece {
    const firsts: CharSet[] = [];
    let nullable = true;
    let varies = false;
    let ambiguous = false;
    while (this.at < this.pattern.length && !'|)'.includes(this.peek())) {
      const piece = this.parseRepeated();
      if (nullable) firsts.push(piece.first);
      nullable &&= piece.nullable;
      varies ||= piece.varies;
      ambiguous ||= piece.ambiguous;
    }
    return { first: CharSet.union(firsts), nullable, varies, ambiguous };
  }

  private parseRepeated(): Piece {
    const atom = this.atom();
    const quantifier = this.quantifier();
    if (!quantifier) return atom;
    if (!this.take('?')) this.take('+');
    if (this.quantifier()) throw new UnsafePattern('regex_redos');
    if (quantifier.max > 1 && (atom.varies || atom.ambiguous)) throw new UnsafePattern('regex_redos');
    if (quantifier.max === Infinity && ++this.unbounded > MAX_UNBOUNDED)
      throw new UnsafePattern('regex_redos');
    return {
      ...atom,
      nullable: atom.nullable || quantifier.min === 0,
      varies: atom.varies || quantifier.min !== quantifier.max,
    };
  }

  private quantifier(): Quantifier | null {
    if (this.take('*')) return { min: 0, max: Infinity };
    if (this.take('+')) return { min: 1, max: Infinity };
    if (this.take('?')) return { min: 0, max: 1 };
    const braces = /^\{(\d*)(,?)(\d*)\}/.exec(this.pattern.slice(this.at));
    if (!braces || (braces[1] === '' && braces[3] === '')) return null;
    this.at += braces[0].length;
    const min = Number(braces[1]);
    const max = braces[2] === '' ? min : braces[3] === '' ? Infinity : Number(braces[3]);
    if (min > MAX_BOUND || (max !== Infinity && max > MAX_BOUND)) throw new UnsafePattern('regex_redos');
    return { min, max };
  }

  private atom(): Piece {
    const character = this.next();
    if (character === '(') return this.group();
    if (character === '[') return literal(this.characterClass());
    if (character === '\\') return this.escape();
    if (character === '.') return literal(CharSet.ALL);
    if (character === '^' || character === '$') return EMPTY;
    if ('*+?'.includes(character)) throw new UnsafePattern('invalid_regex');
    return literal(CharSet.of(character));
  }

  private group(): Piece {
    if (this.take('?')) {
      const opening = /^(?:#[^)]*\)|[imsnJ-]+\)|[imsnJ-]*:|[=!>]|<[=!]|P?<\w+>|'\w+')/.exec(
        this.pattern.slice(this.at),
      );
      // The cost of recursion, conditions and subroutine calls cannot be determined from the text.
      if (!opening) throw new UnsafePattern('invalid_regex');
      this.at += opening[0].length;
      if (opening[0].endsWith(')')) return EMPTY;
    } else if (this.peek() === '*') {
      throw new UnsafePattern('invalid_regex');
    }
    const body = this.alternatives();
    if (!this.take(')')) throw new UnsafePattern('invalid_regex');
    return body;
  }

  private escape(): Piece {
    const character = this.next();
    if (/[1-9gk]/.test(character))
      return { first: CharSet.ALL, nullable: true, varies: true, ambiguous: false };
    if (/[bBAzZG]/.test(character)) return EMPTY;
    if (character === 'Q') throw new UnsafePattern('invalid_regex');
    return literal(CharSet.ofEscape(character));
  }

  private characterClass(): CharSet {
    const negated = this.take('^');
    const sets: CharSet[] = [];
    for (let first = true; ; first = false) {
      const character = this.next();
      if (character === ']' && !first) break;
      if (character === '\\') {
        sets.push(CharSet.ofEscape(this.next()));
      } else if (character === '[' && /[:.=]/.test(this.peek())) {
        sets.push(CharSet.ALL);
      } else if (
        this.peek() === '-' &&
        this.pattern[this.at + 1] !== ']' &&
        this.at + 1 < this.pattern.length
      ) {
        this.at += 1;
        const last = this.next();
        sets.push(last === '\\' ? (this.next(), CharSet.ALL) : CharSet.range(character, last));
      } else {
        sets.push(CharSet.of(character));
      }
    }
    const set = CharSet.union(sets);
    return negated ? set.complement() : set;
  }

  private peek(): string {
    return this.pattern[this.at] ?? '';
  }

  private next(): string {
    const character = this.pattern[this.at];
    if (character === undefined) throw new UnsafePattern('invalid_regex');
    this.at += 1;
    return character;
  }

  private take(character: string): boolean {
    if (this.pattern[this.at] !== character) return false;
    this.at += 1;
    return true;
  }
}

const ASCII_END = 128;
/** Represents every character outside ASCII. */
const WIDE = ASCII_END;
/** Cache: patterns consist of few ranges, of which there are at most 129². */
const RANGES = new Map<number, CharSet>();

/** The characters that a pattern may start with; letters in both cases, so that `$options: "i"` makes no difference. */
class CharSet {
  static readonly NONE = new CharSet(new Set());
  static readonly ALL = new CharSet(new Set(Array.from({ length: ASCII_END + 1 }, (_, code) => code)));

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

  /** The set of `\d`, `\w`, `\s`, their complements, or the escaped character itself. */
  static ofEscape(letter: string): CharSet {
    const known = ESCAPES[letter];
    if (known) return known();
    // \p, \x, \o, \0, \c, \N, \R, \X: the set may be too large, never too small.
    return /[A-Za-z0-9]/.test(letter) ? CharSet.ALL : CharSet.of(letter);
  }

  static union(sets: readonly CharSet[]): CharSet {
    const codes = new Set<number>();
    for (const set of sets) for (const code of set.codes) codes.add(code);
    return new CharSet(codes);
  }

  complement(): CharSet {
    const codes = new Set<number>([WIDE]);
    for (let code = 0; code < ASCII_END; code += 1) {
      // A letter stays when one of its cases does: the set may be too large, never too small.
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

const EMPTY: Piece = { first: CharSet.NONE, nullable: true, varies: false, ambiguous: false };

function literal(first: CharSet): Piece {
  return { first, nullable: false, varies: false, ambiguous: false };
}
