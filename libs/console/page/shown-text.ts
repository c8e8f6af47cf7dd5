/** Characters that hide, turn around or fake what stands beside them. */
const DECEIVING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\uffff]/g;

/** Characters of one text that are shown. */
const MOST = 2_000;

/** Text of strangers as text to look at: what cannot be seen is written out, and what has no end is cut. */
export function shownText(text: string, most = MOST): string {
  const cut = text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text;
  return cut.replace(DECEIVING, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });
}

/** A value as indented JSON to look at. */
export function shownJson(value: unknown, most = 20_000): string {
  return shownText(JSON.stringify(value, null, 2) ?? 'nothing', most);
}
