// Control, bidi and zero-width characters that could forge a log line or drive a terminal.
// eslint-disable-next-line no-control-regex
const UNSAFE =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u2069\uFEFF\n]/g;

/** Untrusted text on one log line: unsafe characters are written out, not deleted. */
export function oneLine(text: string): string {
  return text.replace(UNSAFE, (character) => {
    if (character === '\n') return '\\n';
    const code = character.charCodeAt(0);
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** Untrusted text of any number of lines as a terminal may show it: what could drive the terminal is written out. */
export function terminalText(text: string): string {
  return wellFormed(text).split('\n').map(oneLine).join('\n');
}

/** Halves of characters that lost their other half, as a mark that they did. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}
