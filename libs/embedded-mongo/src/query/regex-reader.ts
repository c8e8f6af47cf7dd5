import {
  caseVariants,
  escapeCharacter,
  foldRange,
  horizontalSpace,
  perlClass,
  posixClass,
  verticalSpace,
  invalidPattern,
} from './regex-parts.js';

/** Reads the characters, escapes and classes of a PCRE pattern, and writes classes as JavaScript has them. */
export class PatternReader {
  protected at = 0;
  /** Only readable with the `u` flag (property classes, characters past the BMP in a class). */
  protected needsUnicode = false;
  /** Has atoms that count characters, so text with surrogate pairs needs the `u` flag. */
  protected countsCharacters = false;

  constructor(protected readonly pattern: string) {}

  /** Escapes that stand for a set of characters: \d, \p{L}, \h … */
  protected setEscape(rest: string): { members: string; inverted: boolean } | undefined {
    const match = /^\\(?:([dwsDWS])|([hHvVN])|([pP])(?:\{(\^?)(\w+)\}|(\w)))/.exec(rest);
    if (!match) return undefined;
    this.at += match[0].length;
    const [, perl, space, property, caret, long, short] = match;
    if (perl !== undefined) {
      this.countsCharacters ||= perl < 'a';
      return { members: perlClass(perl), inverted: false };
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
    throw invalidPattern(`unknown property name after \\P or \\p: ${name}`);
  }

  protected characterEscape(): number {
    const rest = this.pattern.slice(this.at, this.at + 12);
    const match =
      /^\\(?:x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{0,2})|o\{([0-7]+)\}|0([0-7]{0,2})|c([\x20-\x7e])|([aefnrt])|([^A-Za-z0-9]))/su.exec(
        rest,
      );
    if (!match)
      throw invalidPattern(
        rest === '\\' ? '\\ at end of pattern' : `unrecognized or unsupported escape ${rest.slice(0, 2)}`,
      );
    this.at += match[0].length;
    const [, longHex, hex, octal, zero, control, letter, literal] = match;
    if (longHex !== undefined || hex !== undefined) return checkCode(parseInt(longHex ?? (hex || '0'), 16));
    if (octal !== undefined || zero !== undefined) return checkCode(parseInt(octal ?? (zero || '0'), 8));
    if (control !== undefined) return control.toUpperCase().charCodeAt(0) ^ 64;
    if (letter !== undefined) return { a: 7, e: 27, f: 12, n: 10, r: 13, t: 9 }[letter] as number;
    return (literal as string).codePointAt(0) as number;
  }

  /** A whole class, from its opening bracket on. */
  protected characterClass(fold: boolean): string {
    this.at++;
    const inverted = this.pattern[this.at] === '^';
    if (inverted) this.at++;
    this.countsCharacters ||= inverted;
    let members = '';
    for (let first = true; ; first = false) {
      const character = this.pattern[this.at];
      if (character === undefined) throw invalidPattern('missing terminating ] for character class');
      if (character === ']' && !first) break;
      members += this.classMember(fold);
    }
    this.at++;
    return `[${inverted ? '^' : ''}${members}]`;
  }

  private classMember(fold: boolean): string {
    const rest = this.pattern.slice(this.at, this.at + 40);
    const named = /^\[:(\^?)(\w+):\]/.exec(rest);
    if (named) {
      const members = posixClass(named[2] as string);
      if (members === undefined) throw invalidPattern('unknown POSIX class name');
      if (named[1] === '^') throw invalidPattern('negated POSIX classes are not supported');
      this.at += named[0].length;
      return fold && /^(upper|lower)$/.test(named[2] as string) ? 'A-Za-z' : members;
    }
    const set = rest.startsWith('\\') ? this.setEscape(rest) : undefined;
    if (set) {
      if (set.inverted) throw invalidPattern('inverted space classes are not supported inside a class');
      return set.members;
    }
    const from = this.classCharacter();
    if (
      !/^-[^\]]/s.test(this.pattern.slice(this.at, this.at + 2)) ||
      /^-\\[dwshvDWSHVpP]/.test(this.pattern.slice(this.at))
    ) {
      return this.memberSource(fold ? caseVariants(from) : [from]);
    }
    this.at++;
    const to = this.classCharacter();
    if (to < from) throw invalidPattern('range out of order in character class');
    if (to > 0xffff) {
      this.needsUnicode = true;
      return `${this.memberSource([from])}-${this.memberSource([to])}`;
    }
    return fold ? foldRange(from, to) : `${escapeCharacter(from)}-${escapeCharacter(to)}`;
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

  protected takeCodePoint(): number {
    const code = this.pattern.codePointAt(this.at) as number;
    this.at += code > 0xffff ? 2 : 1;
    return code;
  }
}

function checkCode(code: number): number {
  if (code > 0x10ffff) throw invalidPattern('character code point value in \\x{} or \\o{} is too large');
  return code;
}

function compiles(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}
