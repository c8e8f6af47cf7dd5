import { CharSet } from './char-set.js';

export type RegexFault = 'invalid_regex' | 'regex_redos';

/** Repeats of unlimited length one pattern may hold: each can multiply the work of the others. */
const MAX_UNBOUNDED = 10;
const MAX_BOUND = 1000;

interface Quantifier {
  readonly min: number;
  readonly max: number;
}

interface Piece {
  /** What the first character of a match may be. */
  readonly first: CharSet;
  readonly nullable: boolean;
  /** Somewhere inside, a part may repeat a varying number of times. */
  readonly varies: boolean;
  /** Two alternatives may begin alike, so a repeat of them can be split in many ways. */
  readonly ambiguous: boolean;
}

/** Why a pattern was refused, from wherever the reading stopped. */
export class Fault extends Error {
  constructor(readonly fault: RegexFault) {
    super(fault);
  }
}

/** Reads a PCRE pattern just far enough to see which repeats lie inside which. */
export class PatternReader {
  private at = 0;
  private unbounded = 0;

  constructor(private readonly pattern: string) {}

  /** @throws Fault */
  read(): void {
    this.alternatives();
    if (this.at < this.pattern.length) throw new Fault('invalid_regex');
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
      const piece = this.repeated();
      if (nullable) firsts.push(piece.first);
      nullable &&= piece.nullable;
      varies ||= piece.varies;
      ambiguous ||= piece.ambiguous;
    }
    return { first: CharSet.union(firsts), nullable, varies, ambiguous };
  }

  private repeated(): Piece {
    const atom = this.atom();
    const quantifier = this.quantifier();
    if (!quantifier) return atom;
    if (!this.take('?')) this.take('+');
    if (this.quantifier()) throw new Fault('regex_redos');
    if (quantifier.max > 1 && (atom.varies || atom.ambiguous)) throw new Fault('regex_redos');
    if (quantifier.max === Infinity && ++this.unbounded > MAX_UNBOUNDED) throw new Fault('regex_redos');
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
    if (min > MAX_BOUND || (max !== Infinity && max > MAX_BOUND)) throw new Fault('regex_redos');
    return { min, max };
  }

  private atom(): Piece {
    const character = this.next();
    if (character === '(') return this.group();
    if (character === '[') return literal(this.characterClass());
    if (character === '\\') return this.escape();
    if (character === '.') return literal(CharSet.ALL);
    if (character === '^' || character === '$') return EMPTY;
    if ('*+?'.includes(character)) throw new Fault('invalid_regex');
    return literal(CharSet.of(character));
  }

  private group(): Piece {
    if (this.take('?')) {
      const opening = /^(?:#[^)]*\)|[imsnJ-]+\)|[imsnJ-]*:|[=!>]|<[=!]|P?<\w+>|'\w+')/.exec(
        this.pattern.slice(this.at),
      );
      // Recursion, conditions and calls by number have no bound that could be told from the text.
      if (!opening) throw new Fault('invalid_regex');
      this.at += opening[0].length;
      if (opening[0].endsWith(')')) return EMPTY;
    } else if (this.peek() === '*') {
      throw new Fault('invalid_regex');
    }
    const body = this.alternatives();
    if (!this.take(')')) throw new Fault('invalid_regex');
    return body;
  }

  private escape(): Piece {
    const character = this.next();
    if (/[1-9gk]/.test(character))
      return { first: CharSet.ALL, nullable: true, varies: true, ambiguous: false };
    if (/[bBAzZG]/.test(character)) return EMPTY;
    if (character === 'Q') throw new Fault('invalid_regex');
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
    if (character === undefined) throw new Fault('invalid_regex');
    this.at += 1;
    return character;
  }

  private take(character: string): boolean {
    if (this.pattern[this.at] !== character) return false;
    this.at += 1;
    return true;
  }
}

const EMPTY: Piece = { first: CharSet.NONE, nullable: true, varies: false, ambiguous: false };

function literal(first: CharSet): Piece {
  return { first, nullable: false, varies: false, ambiguous: false };
}
