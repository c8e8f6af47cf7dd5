import { codePoints } from '../bson/code-points.js';
import { mongoError } from '../errors.js';
import {
  characterAtom,
  escapeCharacter,
  foldedRange,
  caseVariants,
  horizontalSpace,
  posixClass,
  verticalSpace,
} from './regex-class.js';
import { constantCost, inSequence, inTurn, repeated, type Cost } from './regex-cost.js';

/** A PCRE pattern in JavaScript's syntax, with what the matcher must know about it. */
export interface TranslatedRegex {
  readonly source: string;
  readonly multiline: boolean;
  /** Case folding that could not be spelled out in the source, for back-references. */
  readonly foldByFlag: boolean;
  /** Only readable with the `u` flag (property classes, characters past the BMP in a class). */
  readonly needsUnicode: boolean;
  /** Has atoms that count characters, so text with surrogate pairs needs the `u` flag. */
  readonly countsCharacters: boolean;
  /** Ends a line by `$`, which PCRE also accepts before a final newline. */
  readonly endsLine: boolean;
  readonly groups: number;
  readonly cost: Cost;
}

interface Modes {
  readonly fold: boolean;
  readonly multiline: boolean;
  readonly dotAll: boolean;
  readonly extended: boolean;
}

const invalid = (reason: string): Error => mongoError(51091, `Regular expression is invalid: ${reason}`);

/** Reads a PCRE pattern left to right. Errors: 51091 for what is malformed or has no safe equivalent. */
export function translateRegex(pattern: string, options: string): TranslatedRegex {
  return new Translator(pattern, options).run();
}

class Translator {
  private at = 0;
  private groups = 0;
  private wrappers = 0;
  private foldByFlag = false;
  private needsUnicode = false;
  private countsCharacters = false;
  private endsLine = false;
  private readonly multiline: boolean;
  private readonly start: Modes;
  private readonly names = new Map<string, number>();

  constructor(
    private readonly pattern: string,
    options: string,
  ) {
    let modes: Modes = {
      fold: options.includes('i'),
      multiline: options.includes('m'),
      dotAll: options.includes('s'),
      extended: options.includes('x'),
    };
    const leading = /^\(\?([a-zA-Z-]+)\)/.exec(pattern);
    if (leading) {
      modes = this.changeModes(modes, leading[1] as string, true);
      this.at = leading[0].length;
    }
    this.start = modes;
    this.multiline = modes.multiline;
  }

  run(): TranslatedRegex {
    const body = this.alternatives(this.start);
    if (this.at < this.pattern.length) throw invalid('unmatched closing parenthesis');
    const { multiline, foldByFlag, needsUnicode, countsCharacters, endsLine, groups } = this;
    return {
      source: body.source,
      cost: body.cost,
      multiline,
      foldByFlag,
      needsUnicode,
      countsCharacters,
      endsLine,
      groups,
    };
  }

  private alternatives(outer: Modes): { source: string; cost: Cost } {
    let modes = outer;
    let source = '';
    let cost: Cost | undefined;
    for (;;) {
      const branch = this.sequence(modes);
      modes = branch.modes;
      source += branch.source;
      cost = cost ? inTurn(cost, branch.cost) : branch.cost;
      if (this.pattern[this.at] !== '|') return { source, cost };
      this.at++;
      source += '|';
    }
  }

  private sequence(outer: Modes): { source: string; cost: Cost; modes: Modes } {
    let modes = outer;
    let source = '';
    let cost = constantCost;
    let leadingCost = constantCost;
    let leading = true;
    while (this.at < this.pattern.length && !/[|)]/.test(this.pattern[this.at] as string)) {
      const change = /^\(\?([a-zA-Z-]+)\)/.exec(this.pattern.slice(this.at, this.at + 12));
      if (change) {
        modes = this.changeModes(modes, change[1] as string, false);
        this.at += change[0].length;
        continue;
      }
      const atom = this.atom(modes);
      if (atom === undefined) continue;
      const piece = atom.assertion ? atom : this.quantified(atom);
      source += piece.source;
      // Assertions that open a sequence are tried in turn at one place; others once per way to get there.
      if (atom.assertion && leading) leadingCost = inTurn(leadingCost, piece.cost);
      else {
        leading = false;
        cost = inSequence(cost, piece.cost);
      }
    }
    return { source, modes, cost: leadingCost === constantCost ? cost : inTurn(leadingCost, cost) };
  }

  private quantified(atom: Atom): Atom {
    let piece = atom;
    for (;;) {
      const match = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})([?+]?)/.exec(this.pattern.slice(this.at, this.at + 24));
      if (!match) return piece;
      if (piece !== atom) throw invalid('quantifier does not follow a repeatable item');
      this.at += match[0].length;
      const text = match[0].slice(0, match[0].length - (match[4] as string).length);
      const [min, max] = repetition(text, match);
      const repeatedSource = piece.source + text + (match[4] === '?' ? '?' : '');
      const cost = repeated(piece.cost, min, max);
      piece = { source: repeatedSource, cost };
      if (match[4] === '+') piece = this.atomic(piece);
    }
  }

  /** What an atomic group takes it never gives back: a look-ahead does the same. */
  private atomic(inner: Atom): Atom {
    const name = `a${++this.wrappers}`;
    return { source: `(?:(?=(?<${name}>${inner.source}))\\k<${name}>)`, cost: inner.cost };
  }

  private atom(modes: Modes): Atom | undefined {
    const { pattern } = this;
    const character = pattern[this.at] as string;
    if (modes.extended && /\s/.test(character)) {
      this.at++;
      return undefined;
    }
    if (modes.extended && character === '#') {
      const end = pattern.indexOf('\n', this.at);
      this.at = end < 0 ? pattern.length : end + 1;
      return undefined;
    }
    switch (character) {
      case '(':
        return this.group(modes);
      case '[':
        return this.characterClass(modes);
      case '\\':
        return this.escape(modes);
      case '.':
        this.at++;
        this.countsCharacters = true;
        return plain(modes.dotAll ? '[\\s\\S]' : '[^\\n]');
      case '^':
        this.at++;
        return { source: '^', cost: constantCost, assertion: true };
      case '$':
        this.at++;
        this.endsLine = true;
        return { source: '$', cost: constantCost, assertion: true };
      case '*':
      case '+':
      case '?':
        throw invalid('quantifier does not follow a repeatable item');
      default:
        return plain(characterAtom(this.takeCodePoint(), modes.fold));
    }
  }

  private group(modes: Modes): Atom | undefined {
    const { pattern } = this;
    const head =
      /^\((?:\?(?:#[^)]*\)|P?<([A-Za-z_]\w*)>|'([A-Za-z_]\w*)'|P=(\w+)\)|(<?[=!])|(>)|([a-zA-Z-]*):))?/.exec(
        pattern.slice(this.at),
      ) as RegExpExecArray;
    const [text, named, quoted, reference, look, atomic, flags] = head;
    if (text === '(' && pattern[this.at + 1] === '?') throw invalid('unrecognized character after (?');
    if (text === '(' && pattern[this.at + 1] === '*') throw invalid('(*VERB) not recognized or malformed');
    this.at += text.length;
    if (text.startsWith('(?#')) return undefined;
    if (reference !== undefined) return this.backReference(this.names.get(reference), modes);
    const name = named ?? quoted;
    const captures = name !== undefined || text === '(';
    const number = captures ? ++this.groups : 0;
    if (name !== undefined) this.names.set(name, number);
    const inner = this.alternatives(flags ? this.changeModes(modes, flags, false) : modes);
    if (pattern[this.at] !== ')') throw invalid('missing closing parenthesis');
    this.at++;
    if (look !== undefined) return { source: `(?${look}${inner.source})`, cost: inner.cost, assertion: true };
    if (atomic !== undefined) return this.atomic(inner);
    return { source: captures ? `(?<g${number}>${inner.source})` : `(?:${inner.source})`, cost: inner.cost };
  }

  private backReference(group: number | undefined, modes: Modes): Atom {
    if (group === undefined || group < 1 || group > this.groups) {
      throw invalid('reference to non-existent subpattern');
    }
    this.foldByFlag ||= modes.fold;
    return { source: `\\k<g${group}>`, cost: constantCost };
  }

  private escape(modes: Modes): Atom | undefined {
    const rest = this.pattern.slice(this.at, this.at + 40);
    if (rest.startsWith('\\Q')) return this.quoted(modes);
    if (rest.startsWith('\\E')) {
      this.at += 2;
      return undefined;
    }
    const reference =
      /^\\(?:([1-9]\d*)|g\{?([1-9]\d*)\}?|[gk](?:\{([A-Za-z_]\w*)\}|<([A-Za-z_]\w*)>|'([A-Za-z_]\w*)'))/.exec(
        rest,
      );
    if (reference) {
      this.at += reference[0].length;
      const name = reference[3] ?? reference[4] ?? reference[5];
      return this.backReference(
        name === undefined ? Number(reference[1] ?? reference[2]) : this.names.get(name),
        modes,
      );
    }
    const assertion = /^\\([bBAzZ])/.exec(rest);
    if (assertion) {
      this.at += 2;
      return { source: this.assertion(assertion[1] as string), cost: constantCost, assertion: true };
    }
    const set = this.setEscape(rest);
    if (set !== undefined) return plain(set.inverted ? `[^${set.members}]` : `[${set.members}]`);
    if (rest.startsWith('\\R')) {
      this.at += 2;
      return { source: `(?:\\r\\n|[${verticalSpace}])`, cost: { ...constantCost, factor: 2 } };
    }
    return plain(characterAtom(this.characterEscape(), modes.fold));
  }

  private assertion(name: string): string {
    if (name === 'b' || name === 'B') return `\\${name}`;
    if (name === 'A') return this.multiline ? '(?<![\\s\\S])' : '^';
    if (name === 'z') return '(?![\\s\\S])';
    return '(?=\\n?(?![\\s\\S]))';
  }

  private quoted(modes: Modes): Atom | undefined {
    const end = this.pattern.indexOf('\\E', this.at + 2);
    const text = this.pattern.slice(this.at + 2, end < 0 ? undefined : end);
    this.at = end < 0 ? this.pattern.length : end + 2;
    if (text === '') return undefined;
    const atoms = codePoints(text).map((character) =>
      characterAtom(character.codePointAt(0) as number, modes.fold),
    );
    // A quantifier after \E belongs to the last character alone.
    const last = this.quantified(plain(atoms.pop() as string));
    return { source: `(?:${atoms.join('')}${last.source})`, cost: last.cost };
  }

  /** Escapes that stand for a set of characters: \d, \p{L}, \h … */
  private setEscape(rest: string): { members: string; inverted: boolean } | undefined {
    const match = /^\\(?:([dwsDWS])|([hHvVN])|([pP])(?:\{(\^?)(\w+)\}|(\w)))/.exec(rest);
    if (!match) return undefined;
    this.at += match[0].length;
    const [, perl, space, property, caret, long, short] = match;
    if (perl !== undefined) {
      this.countsCharacters ||= perl < 'a';
      return { members: `\\${perl}`, inverted: false };
    }
    if (space !== undefined) {
      this.countsCharacters ||= space < 'a';
      const members = space === 'N' ? '\\n' : space.toLowerCase() === 'h' ? horizontalSpace : verticalSpace;
      return { members, inverted: space < 'a' };
    }
    this.needsUnicode = true;
    const name = long ?? short ?? '';
    const inverted = (property === 'P') !== (caret === '^');
    for (const spelling of [name, `Script=${name}`]) {
      const members = `\\${inverted ? 'P' : 'p'}{${spelling}}`;
      if (compiles(`[${members}]`)) return { members, inverted: false };
    }
    throw invalid(`unknown property name after \\P or \\p: ${name}`);
  }

  private characterEscape(): number {
    const rest = this.pattern.slice(this.at, this.at + 12);
    const match =
      /^\\(?:x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{0,2})|o\{([0-7]+)\}|0([0-7]{0,2})|c([\x20-\x7e])|([aefnrt])|([^A-Za-z0-9]))/su.exec(
        rest,
      );
    if (!match) {
      throw invalid(
        rest === '\\' ? '\\ at end of pattern' : `unrecognized or unsupported escape ${rest.slice(0, 2)}`,
      );
    }
    this.at += match[0].length;
    const [, longHex, hex, octal, zero, control, letter, literal] = match;
    if (longHex !== undefined || hex !== undefined) return checkedCode(parseInt(longHex ?? (hex || '0'), 16));
    if (octal !== undefined || zero !== undefined) return checkedCode(parseInt(octal ?? (zero || '0'), 8));
    if (control !== undefined) return control.toUpperCase().charCodeAt(0) ^ 64;
    if (letter !== undefined) return { a: 7, e: 27, f: 12, n: 10, r: 13, t: 9 }[letter] as number;
    return (literal as string).codePointAt(0) as number;
  }

  private characterClass(modes: Modes): Atom {
    this.at++;
    const inverted = this.pattern[this.at] === '^';
    if (inverted) this.at++;
    this.countsCharacters ||= inverted;
    let members = '';
    for (let first = true; ; first = false) {
      const character = this.pattern[this.at];
      if (character === undefined) throw invalid('missing terminating ] for character class');
      if (character === ']' && !first) break;
      members += this.classMember(modes);
    }
    this.at++;
    return plain(`[${inverted ? '^' : ''}${members}]`);
  }

  private classMember(modes: Modes): string {
    const rest = this.pattern.slice(this.at, this.at + 40);
    const named = /^\[:(\^?)(\w+):\]/.exec(rest);
    if (named) {
      const members = posixClass(named[2] as string);
      if (members === undefined) throw invalid('unknown POSIX class name');
      if (named[1] === '^') throw invalid('negated POSIX classes are not supported');
      this.at += named[0].length;
      return modes.fold && /^(upper|lower)$/.test(named[2] as string) ? 'A-Za-z' : members;
    }
    const set = rest.startsWith('\\') ? this.setEscape(rest) : undefined;
    if (set) {
      if (set.inverted) throw invalid('inverted space classes are not supported inside a class');
      return set.members;
    }
    const from = this.classCharacter();
    if (
      !/^-[^\]]/s.test(this.pattern.slice(this.at, this.at + 2)) ||
      /^-\\[dwshvDWSHVpP]/.test(this.pattern.slice(this.at))
    ) {
      return this.memberSource(modes.fold ? caseVariants(from) : [from]);
    }
    this.at++;
    const to = this.classCharacter();
    if (to < from) throw invalid('range out of order in character class');
    if (to > 0xffff) {
      this.needsUnicode = true;
      return `${this.memberSource([from])}-${this.memberSource([to])}`;
    }
    return modes.fold ? foldedRange(from, to) : `${escapeCharacter(from)}-${escapeCharacter(to)}`;
  }

  private classCharacter(): number {
    const rest = this.pattern.slice(this.at, this.at + 2);
    if (rest === '\\b') {
      this.at += 2;
      return 8;
    }
    return rest.startsWith('\\') ? this.characterEscape() : this.takeCodePoint();
  }

  private memberSource(codes: readonly number[]): string {
    return codes
      .map((code) => {
        if (code <= 0xffff) return escapeCharacter(code);
        this.needsUnicode = true;
        return `\\u{${code.toString(16)}}`;
      })
      .join('');
  }

  private takeCodePoint(): number {
    const code = this.pattern.codePointAt(this.at) as number;
    this.at += code > 0xffff ? 2 : 1;
    return code;
  }

  private changeModes(modes: Modes, flags: string, leading: boolean): Modes {
    const [on = '', off = ''] = flags.split('-');
    if (!/^[imsx]*$/.test(on + off)) throw invalid(`unsupported inline option (?${flags})`);
    if (!leading && (on + off).includes('m'))
      throw invalid('(?m) is supported at the start of a pattern only');
    const read = (flag: string, before: boolean): boolean =>
      on.includes(flag) || (before && !off.includes(flag));
    return {
      fold: read('i', modes.fold),
      multiline: read('m', modes.multiline),
      dotAll: read('s', modes.dotAll),
      extended: read('x', modes.extended),
    };
  }
}

interface Atom {
  readonly source: string;
  readonly cost: Cost;
  /** True when it consumes nothing, so a quantifier after it would mean little. */
  readonly assertion?: boolean;
}

const plain = (source: string): Atom => ({ source, cost: constantCost });

function repetition(text: string, match: RegExpExecArray): [number, number] {
  if (text === '*') return [0, Infinity];
  if (text === '+') return [1, Infinity];
  if (text === '?') return [0, 1];
  const min = Number(match[1]);
  const max = match[2] === '' ? min : match[3] === '' ? Infinity : Number(match[3]);
  if (min > 65535 || (max !== Infinity && max > 65535)) throw invalid('number too big in {} quantifier');
  if (max < min) throw invalid('numbers out of order in {} quantifier');
  return [min, max];
}

function checkedCode(code: number): number {
  if (code > 0x10ffff) throw invalid('character code point value in \\x{} or \\o{} is too large');
  return code;
}

function compiles(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}
