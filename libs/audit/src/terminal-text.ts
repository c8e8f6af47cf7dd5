// Control, bidi and zero-width characters that could forge a log line or drive a terminal, and letters that nobody sees: a person
// who decides upon what is shown must be shown all of it.
const UNSAFE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u115F\u1160\u180E\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u2069\u3164\uFEFF\uFFA0\n\u{E0000}-\u{E007F}]/gu;

/** Untrusted text on one log line: unsafe characters are written out, not deleted. */
export function oneLine(text: string): string {
  return text.replace(UNSAFE, (character) =>
    character === '\n' ? '\\n' : character.split('').map(escaped).join(''),
  );
}

function escaped(unit: string): string {
  const code = unit.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Untrusted text of any number of lines as a terminal may show it: what could drive the terminal is written out. */
export function terminalText(text: string): string {
  return wellFormed(text).split('\n').map(oneLine).join('\n');
}

/** Halves of characters that lost their other half, as a mark that they did. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}
