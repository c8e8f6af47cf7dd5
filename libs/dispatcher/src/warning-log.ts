/** Where private causes go. One line per call; never sent to a client. */
export interface WarningLog {
  warn(message: string): void;
}

const CONTROL_CHARACTERS = /[\p{Cc}\u2028\u2029]/gu;

/** Untrusted text for one log line: control characters are written out, so that no line can be forged. */
export function oneLine(text: string): string {
  return text.replace(CONTROL_CHARACTERS, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Class and message of anything that was thrown, for the log alone. */
export function faultLine(prefix: string, fault: unknown): string {
  if (!(fault instanceof Error)) return `${prefix} ${oneLine(typeof fault)}`;
  return `${prefix} ${oneLine(fault.name)}: ${oneLine(fault.message)}`;
}
