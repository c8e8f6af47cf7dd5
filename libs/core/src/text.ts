// Text of strangers where people read it: on pages, at terminals, in logs and in questions. The pages of the browser import this file
// alone, so it imports nothing.

/**
 * A variation selector where it changes what is seen (a sign that is an emoji by it alone, or a keycap); or a character that
 * hides, turns around or fakes what stands beside it: controls except tab and line feed, all that Unicode lets a display
 * ignore (`DI`: zero-width and bidirectional marks, tags, other variation selectors), separators, specials.
 */
const HIDDEN_CHARACTERS =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- these are what is found
  /(?<=(?![#*0-9]|\p{EPres})\p{Emoji})\ufe0f|(?<=[#*0-9])\ufe0f(?=\u20e3)|([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\uffff\p{DI}])/gu;

/** Text with another one in the place of each hidden character. */
export function replaceHidden(text: string, write: (character: string) => string): string {
  return text.replace(HIDDEN_CHARACTERS, (found: string, hidden: string | undefined) =>
    hidden === undefined ? found : write(hidden),
  );
}

/** Text without its hidden characters. @param instead what stands in the place of each */
export const withoutHidden = (text: string, instead = ''): string => replaceHidden(text, () => instead);

/** Text in which every hidden character is written as its escape, `\u200b` or `\u{e0041}`. */
export function withHiddenWritten(text: string): string {
  return replaceHidden(text, (hidden) => {
    const code = (hidden.codePointAt(0) as number).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** The beginning of a text, of at most so many UTF-16 code units: never half of a character that takes two. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}
