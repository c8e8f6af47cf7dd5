import { isClassName, isParseClassName } from '#core';

/** The words of a name, in lower case: `orderLine_ids` is order, line, ids. */
function wordsOf(name: string): string[] {
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
export function singularOf(word: string): string {
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
  const words = wordsOf(collection);
  const last = words.at(-1);
  if (last === undefined) return null;
  const singular = pascal([...words.slice(0, -1), singularOf(last)]);
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
export function stemOf(name: string): string {
  const words = wordsOf(referenceName(name));
  return [...words.slice(0, -1), singularOf(words.at(-1) ?? '')].join('');
}

/** Words that name a secret, or what a person is known by. */
const SENSITIVE_WORDS = new Set(
  (
    'pwd pw hash salt otp totp mfa pin cvv cvc card iban bic ssn nino tin dob birth birthday mail ' +
    'tel mobile cell fax address street postcode zip passport licence license signature jwt cookie session key'
  ).split(' '),
);

/** Beginnings of such words. */
const SENSITIVE_BEGINNINGS =
  /^(password|passwd|passwort|passphrase|passcode|secret|token|credential|apikey|accesskey|privatekey|creditcard|cardnumber|accountnumber|email|phone|telephone|birthd|dateofbirth|socialsecurity|taxid|salary|wage)/;

/** Whether a column's name says that it holds a secret or what a person is known by. */
export function isSensitiveName(name: string): boolean {
  const words = wordsOf(name);
  if (SENSITIVE_BEGINNINGS.test(words.join(''))) return true;
  return words.some((word) => {
    const singular = singularOf(word);
    return SENSITIVE_WORDS.has(word) || SENSITIVE_WORDS.has(singular) || SENSITIVE_BEGINNINGS.test(word);
  });
}

const SENSITIVE_TEXTS: readonly (readonly [looks: string, test: (text: string) => boolean])[] = [
  ['e-mail addresses', (text) => /^[^\s@]{1,64}@[^\s@]{1,128}\.[^\s@.]{2,24}$/.test(text)],
  [
    'hashes of passwords',
    (text) => /^\$(2[abxy]?|argon2(id|i|d)|scrypt|pbkdf2[a-z0-9-]*|[156])\$/.test(text),
  ],
  ['access tokens', (text) => /^(eyJ[\w-]+\.eyJ|gh[pousr]_|sk_(live|test)_|xox[abpr]-)/.test(text)],
  ['private keys', (text) => text.startsWith('-----BEGIN ')],
  ['bank accounts', (text) => /^[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,3})?$/.test(text)],
  ['card numbers', isCardNumber],
  ['phone numbers', (text) => /^\+\d[\d ()/.-]{6,18}\d$/.test(text)],
];

function isCardNumber(text: string): boolean {
  const digits = text.replace(/[ -]/g, '');
  if (!/^\d{13,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const doubled = Number(digit) * (index % 2 === 1 ? 2 : 1);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0;
}

/** What most of these texts look like, of what agents should not read; null: none of it. */
export function sensitiveTexts(texts: readonly string[]): string | null {
  const found = SENSITIVE_TEXTS.find(([, test]) => texts.filter(test).length * 2 > texts.length);
  return found?.[0] ?? null;
}

const TENANTS = new Set(
  'tenant org organisation organization account workspace company team client site'.split(' '),
);

/** Whether a column may say which tenant a row belongs to. */
export const isTenantName = (name: string): boolean => TENANTS.has(stemOf(name));

const CREATED =
  'createdAt created_at created createdOn created_on dateCreated date_created creationDate insertedAt inserted_at';
const UPDATED =
  'updatedAt updated_at updated updatedOn updated_on modifiedAt modified_at modified dateModified date_modified lastModified last_modified';

/** Names under which the time stamps of documents are stored, the likeliest first. */
export const TIMESTAMP_NAMES = { createdAt: CREATED.split(' '), updatedAt: UPDATED.split(' ') } as const;
