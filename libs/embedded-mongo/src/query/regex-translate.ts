import { codePoints } from '../bson/text.js';
import type { Atom, Cost, Modes, TranslatedRegex } from './regex-parts.js';
import {
  changeModes,
  characterAtom,
  constantCost,
  inSequence,
  inTurn,
  plain,
  readModes,
  repeatCost,
  repetition,
  verticalSpace,
  invalidPattern,
} from './regex-parts.js';
import { PatternReader } from './regex-reader.js';

const deepestNesting = 250;

/** Reads a PCRE pattern left to right. Errors: 51091 for what is malformed or has no safe equivalent. */
export function translateRegex(pattern: string, options: string): TranslatedRegex {
  return new Translator(pattern, options).run();
}

class Translator extends PatternReader {
  private groups = 0;
  private wrappers = 0;
  private foldByFlag = false;
  private endsLine = false;
  private depth = 0;
  private readonly multiline: boolean;
  private readonly start: Modes;
  private readonly names = new Map<string, number>();

  constructor(pattern: string, options: string) {
    super(pattern);
    let modes = readModes(options);
    const leading = /^\(\?([a-zA-Z-]+)\)/.exec(pattern);
    if (leading) {
      modes = changeModes(modes, leading[1] as string, true);
      this.at = leading[0].length;
    }
    this.start = modes;
    this.multiline = modes.multiline;
  }

  run(): TranslatedRegex {
    const body = this.alternatives(this.start);
    if (this.at < this.pattern.length) throw invalidPattern('unmatched closing parenthesis');
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
        modes = changeModes(modes, change[1] as string, false);
        this.at += change[0].length;
        continue;
      }
      const atom = this.atom(modes);
      if (atom === undefined) continue;
      const piece = atom.assertion ? atom : this.readQuantified(atom);
      source += piece.source;
      // Assertions that open a sequence are tried in turn at one place; others once per way to get there.
      if (piece.cost === constantCost && atom.assertion) continue;
      if (atom.assertion && leading) {
        leadingCost = leadingCost === constantCost ? piece.cost : inTurn(leadingCost, piece.cost);
      } else {
        leading = false;
        cost = inSequence(cost, piece.cost);
      }
    }
    return { source, modes, cost: leadingCost === constantCost ? cost : inTurn(leadingCost, cost) };
  }

  private readQuantified(atom: Atom): Atom {
    let piece = atom;
    for (;;) {
      const match = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})([?+]?)/.exec(this.pattern.slice(this.at, this.at + 24));
      if (!match) return piece;
      if (piece !== atom) throw invalidPattern('quantifier does not follow a repeatable item');
      this.at += match[0].length;
      const text = match[0].slice(0, match[0].length - (match[4] as string).length);
      const [min, max] = repetition(text, match);
      const repeatedSource = piece.source + text + (match[4] === '?' ? '?' : '');
      const cost = repeatCost(piece.cost, min, max);
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
        return plain(this.characterClass(modes.fold));
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
        throw invalidPattern('quantifier does not follow a repeatable item');
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
    if (text === '(' && pattern[this.at + 1] === '?') throw invalidPattern('unrecognized character after (?');
    if (text === '(' && pattern[this.at + 1] === '*')
      throw invalidPattern('(*VERB) not recognized or malformed');
    this.at += text.length;
    const begin = this.at;
    if (text.startsWith('(?#')) return undefined;
    if (reference !== undefined) return this.backReference(this.names.get(reference), modes);
    const name = named ?? quoted;
    const captures = name !== undefined || text === '(';
    const number = captures ? ++this.groups : 0;
    if (name !== undefined) this.names.set(name, number);
    if (++this.depth > deepestNesting) throw invalidPattern('parentheses are too deeply nested');
    const inner = this.alternatives(flags ? changeModes(modes, flags, false) : modes);
    if (pattern[this.at] !== ')') throw invalidPattern('missing closing parenthesis');
    this.at++;
    this.depth--;
    // PCRE asks of what is behind how long it is.
    const behind = look?.startsWith('<')
      ? pattern.slice(begin, this.at).replace(/\\.|\[[^\]]*\]|\(\?/gs, '')
      : '';
    if (/[*+?]|\{\d+,/.test(behind)) throw invalidPattern('lookbehind assertion is not fixed length');
    if (look !== undefined) return { source: `(?${look}${inner.source})`, cost: inner.cost, assertion: true };
    if (atomic !== undefined) return this.atomic(inner);
    return { source: captures ? `(?<g${number}>${inner.source})` : `(?:${inner.source})`, cost: inner.cost };
  }

  private backReference(group: number | undefined, modes: Modes): Atom {
    if (group === undefined || group < 1 || group > this.groups)
      throw invalidPattern('reference to non-existent subpattern');
    this.foldByFlag ||= modes.fold;
    return { source: `\\k<g${group}>`, cost: constantCost };
  }

  private escape(modes: Modes): Atom | undefined {
    const rest = this.pattern.slice(this.at, this.at + 40);
    if (rest.startsWith('\\Q')) return this.readQuoted(modes);
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

  private readQuoted(modes: Modes): Atom | undefined {
    const end = this.pattern.indexOf('\\E', this.at + 2);
    const text = this.pattern.slice(this.at + 2, end < 0 ? undefined : end);
    this.at = end < 0 ? this.pattern.length : end + 2;
    if (text === '') return undefined;
    const atoms = codePoints(text).map((character) =>
      characterAtom(character.codePointAt(0) as number, modes.fold),
    );
    // A quantifier after \E belongs to the last character alone.
    const last = this.readQuantified(plain(atoms.pop() as string));
    return { source: `(?:${atoms.join('')}${last.source})`, cost: last.cost };
  }
}
