/** A string as its code points: an emoji is one, where JavaScript's own length counts two. */
export const codePoints = (text: string): string[] => Array.from(text);
