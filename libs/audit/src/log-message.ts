import { inspect } from 'node:util';

export type LogMembers = Readonly<Record<string, unknown>>;

/** A line of the log with members: `text name=value …` for people, a member each where lines are JSON. */
export class LogMessage {
  constructor(
    readonly text: string,
    readonly members: LogMembers,
  ) {}

  toString(): string {
    return `${oneLine(this.text)}${writeMembers(this.members)}`;
  }

  /** As the logger of Nest writes an object. */
  [inspect.custom](): string {
    return this.toString();
  }

  /** As a logger that writes JSON writes an object. */
  toJSON(): LogMembers {
    return { message: this.text, ...this.members };
  }
}

const BARE_VALUE = /^[\w.:/@+-]+$/;

/** ` name=value` for each member; a value with other characters is JSON. */
export function writeMembers(members: LogMembers): string {
  let line = '';
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    const isBare = typeof value === 'string' && BARE_VALUE.test(value);
    line += ` ${name}=${isBare ? value : oneLine(JSON.stringify(value))}`;
  }
  return line;
}

// Control, bidi, zero-width and invisible characters. They could forge a log line, drive a terminal, or hide text from a person
// who has to decide on it.
const UNSAFE_CHARACTERS =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u115F\u1160\u180E\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u2069\u3164\uFEFF\uFFA0\n\u{E0000}-\u{E007F}]/gu;

/** Visible ASCII, as nearly every line is: nothing in it is unsafe. */
const PLAIN_TEXT = /^[ -~]*$/;

/** Untrusted text on one log line: unsafe characters are escaped, not removed. */
export function oneLine(text: string): string {
  if (PLAIN_TEXT.test(text)) return text;
  return text.replace(UNSAFE_CHARACTERS, (character) =>
    character === '\n' ? '\\n' : character.split('').map(escapeUnit).join(''),
  );
}

function escapeUnit(unit: string): string {
  const code = unit.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Untrusted text on several lines of a terminal: unsafe characters are escaped. */
export function terminalText(text: string): string {
  return wellFormed(text).split('\n').map(oneLine).join('\n');
}

/** Replaces lone surrogates with the replacement character. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}
