// Text of strangers where people open it: in spreadsheets. The pages of the browser import this file alone, so it imports nothing.

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
