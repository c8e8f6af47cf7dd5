import { isClassName, isParseClassName } from '#core';

/** The words of a name, in lower case: `orderLine_ids` is order, line, ids. */
export function splitWords(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

const IRREGULAR: Readonly<Record<string, string>> = {
  people: 'person',
  children: 'child',
  men: 'man',
  women: 'woman',
  mice: 'mouse',
  feet: 'foot',
  movies: 'movie',
  cookies: 'cookie',
  ties: 'tie',
  analyses: 'analysis',
  crises: 'crisis',
  indices: 'index',
  vertices: 'vertex',
  matrices: 'matrix',
  criteria: 'criterion',
  statuses: 'status',
  bonuses: 'bonus',
  viruses: 'virus',
  campuses: 'campus',
  buses: 'bus',
  lenses: 'lens',
  heroes: 'hero',
  potatoes: 'potato',
  tomatoes: 'tomato',
  leaves: 'leaf',
  shelves: 'shelf',
  wives: 'wife',
  lives: 'life',
  knives: 'knife',
};

/** The singular of an English word, as far as its form shows it. */
export function toSingular(word: string): string {
  const irregular = Object.hasOwn(IRREGULAR, word) ? IRREGULAR[word] : undefined;
  if (irregular !== undefined) return irregular;
  if (/^(series|species|news|data|media|status|address|access|process|business|analysis)$/.test(word))
    return word;
  if (/[^aeiou]ies$/.test(word)) return `${word.slice(0, -3)}y`;
  if (/(ss|sh|ch|x|zz)es$/.test(word)) return word.slice(0, -2);
  return /[^su]s$/.test(word) ? word.slice(0, -1) : word;
}

const pascal = (words: readonly string[]): string =>
  words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');

/**
 * A class name for a collection: PascalCase and singular. Where that is a class of Parse's own (`User`, `Role`, `Product`) it
 * stays plural. Null: its name makes none.
 * @param taken names of other classes
 */
export function classNameFor(collection: string, taken: ReadonlySet<string>): string | null {
  const words = splitWords(collection);
  const last = words.at(-1);
  if (last === undefined) return null;
  const singular = pascal([...words.slice(0, -1), toSingular(last)]);
  const plural = pascal(words);
  const candidates = [singular, plural, `${singular}Document`, collection];
  const usable = (name: string) => isClassName(name) && !isParseClassName(name) && !name.startsWith('_');
  return candidates.find((name) => usable(name) && !taken.has(name)) ?? null;
}

/** What a reference is called: `customer_id` is customer. */
export function referenceName(column: string): string {
  const stem = column.replace(/([_-][iI][dD]s?|Ids?|IDs?)$/, '').replace(/[_-]+$/, '');
  return stem === '' ? column : stem;
}

/** One spelling of what a column may refer to and of what a collection holds. */
export function toStem(name: string): string {
  const words = splitWords(referenceName(name));
  return [...words.slice(0, -1), toSingular(words.at(-1) ?? '')].join('');
}

/** The likeliest first. */
const TENANT_NAMES = (
  'tenant org organisation organization company workspace account mandant mandator entreprise societe empresa ' +
  'organizacion organizacao azienda organisatie bedrijf team client site'
).split(' ');

/** How likely a column says which tenant a row belongs to: a smaller number is likelier; null: it does not. */
export function tenantRank(name: string): number | null {
  const rank = TENANT_NAMES.indexOf(toStem(name));
  return rank < 0 ? null : rank;
}

const CREATED_NAMES =
  'createdAt created_at created createdOn created_on dateCreated date_created creationDate insertedAt inserted_at';
const UPDATED_NAMES =
  'updatedAt updated_at updated updatedOn updated_on modifiedAt modified_at modified dateModified date_modified lastModified last_modified';

/** Names under which the time stamps of documents are stored, the likeliest first. */
export const TIMESTAMP_NAMES = {
  createdAt: CREATED_NAMES.split(' '),
  updatedAt: UPDATED_NAMES.split(' '),
} as const;
