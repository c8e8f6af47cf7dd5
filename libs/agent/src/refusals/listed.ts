export const listed = (names: Iterable<string>): string => [...names].join(', ');

/** As many names as an agent can make use of, and how many more there are. */
export function listedAtMost(names: readonly string[], most = 20): { shown: string[]; text: string } {
  const shown = names.slice(0, most);
  const more = names.length > most ? ` (+${names.length - most} more)` : '';
  return { shown, text: shown.length > 0 ? listed(shown) + more : 'none' };
}
