import fc from 'fast-check';
import { toLowerCamel } from './field-names.js';

/** The spellings of column names: `full_text`, `fullText`, `FullText`, `FULL_TEXT`, `Full_Text`, `sSN`, `ssn`, `line_2`. */
const FORMS: readonly ((words: readonly string[]) => string)[] = [
  (words) => words.join('_'),
  (words) => words.map((word, index) => (index === 0 ? word : capitalised(word))).join(''),
  (words) => words.map(capitalised).join(''),
  (words) => words.join('_').toUpperCase(),
  (words) => words.map(capitalised).join('_'),
  (words) => words.join(''),
  (words) => words.join('').toUpperCase(),
  (words) => toLowerCamel(words.join('').toUpperCase()),
  (words) => `${words.join('_')}_`,
  (words) => words.join('__'),
];

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

const STEMS: readonly (readonly string[])[] = [
  ['ssn'],
  ['full', 'text'],
  ['created', 'on'],
  ['line', '2'],
  ['x', 'y', 'z'],
];

/** One column name. Few stems in many spellings, so that spellings of one stem meet in a class. */
export const columnName: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom(...STEMS), fc.constantFrom(...FORMS))
  .map(([words, form]) => form(words));

/** The columns of one class, colliding pairs among them. */
export const columnNames: fc.Arbitrary<readonly string[]> = fc.uniqueArray(columnName, {
  minLength: 1,
  maxLength: 8,
});

/** Pairs of columns that differ only in case and underscores. */
export function collidingPairs(names: readonly string[]): readonly (readonly [string, string])[] {
  const same = (one: string, other: string) =>
    one.replaceAll('_', '').toLowerCase() === other.replaceAll('_', '').toLowerCase();
  return names.flatMap((one, index) =>
    names.slice(index + 1).flatMap((other) => (same(one, other) ? [[one, other] as const] : [])),
  );
}
