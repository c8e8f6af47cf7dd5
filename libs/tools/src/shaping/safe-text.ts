// Text of strangers where people open it: in spreadsheets and on pages. The pages of the browser import this file alone, so
// it imports nothing.

/**
 * The start of a formula, at the start of the text and behind whatever may end a cell or a row: a spreadsheet of a language
 * with decimal commas splits at `;`, also inside quotes that do not begin its cell. Blanks, quotes and marks without a width
 * before the formula do not stop it, and full-width signs count.
 */
const FORMULA = /(^|[;\t\r\n])((?:(?![\t\r\n])[\s\p{Cc}\p{Cf}"])*[=+\-@＝＋－＠])/gu;
/** A spreadsheet may drop such a start, with the quote before what follows. */
const LEADING_BREAK = /^[\t\r\n]/;

/** Text that no spreadsheet runs, wherever it splits the text into cells: what it would run gets the prefix `'`. */
export function withoutFormulas(text: string): string {
  return text.replace(FORMULA, "$1'$2").replace(LEADING_BREAK, "'$&");
}

/**
 * A variation selector where it changes what is seen (a sign that is an emoji by it alone, or a keycap); or a character that
 * hides, turns around or fakes what stands beside it: controls except tab and line feed, all that Unicode lets a display
 * ignore (`DI`: zero-width and bidirectional marks, tags, other variation selectors), separators, specials.
 */
const HIDDEN_CHARACTERS =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- these are what is found
  /(?<=(?![#*0-9]|\p{EPres})\p{Emoji})\ufe0f|(?<=[#*0-9])\ufe0f(?=\u20e3)|([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\uffff\p{DI}])/gu;

/** Text without its hidden characters. @param instead what stands in the place of each */
export function withoutHidden(text: string, instead = ''): string {
  return text.replace(HIDDEN_CHARACTERS, (found: string, hidden: string | undefined) =>
    hidden === undefined ? found : instead,
  );
}

/** Text in which every hidden character is written as its escape, `\u200b` or `\u{e0041}`. */
export function withHiddenWritten(text: string): string {
  return text.replace(HIDDEN_CHARACTERS, (found: string, hidden: string | undefined) => {
    if (hidden === undefined) return found;
    const code = (hidden.codePointAt(0) as number).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
  });
}
