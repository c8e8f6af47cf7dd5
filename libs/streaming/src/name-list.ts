/** Trimmed, lower-cased, without blanks. @throws TypeError naming the option */
export function nameList(values: readonly string[], option: string): string[] {
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'string')) {
    throw new TypeError(`${option}: expected a list of names`);
  }
  return values.map((value) => value.trim().toLowerCase()).filter((value) => value !== '');
}
