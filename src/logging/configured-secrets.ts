import { isJsonObject } from '#core';

/** Options whose values are credentials, as they are written or misspelt. */
const SECRET_OPTION = /(?:headers|keys?|passwo?r?d|passphrase|secret|token)$/i;

/**
 * Every credential of a configuration by its name, and the passwords of its URIs. It need not be a configuration: a file that is refused is
 * looked through too, as text where it is no YAML.
 */
export function secretsIn(config: unknown): string[] {
  if (typeof config === 'string') return findInText(config);
  if (Array.isArray(config)) return config.flatMap(secretsIn);
  if (!isJsonObject(config)) return [];
  const { agents, policy, ...options } = config;
  // Classes, columns and agents are named by the operator: what is below such a name is no credential.
  return [...findSecrets(options, true), ...findSecrets({ agents, policy }, false)];
}

/**
 * @param inherits whether all that is below the name of a credential is one
 * @param named whether the value has such a name
 * @param around what holds it: by an alias, YAML can hold itself
 */
function findSecrets(
  value: unknown,
  inherits: boolean,
  named = false,
  around: readonly unknown[] = [],
): string[] {
  if (typeof value === 'string') return named ? [value] : [...readPassword(value), ...readPair(value)];
  // Without quotes, a key of digits is a number.
  if (typeof value === 'number') return named ? [String(value)] : [];
  if (around.includes(value)) return [];
  const path = [...around, value];
  if (Array.isArray(value)) return value.flatMap((entry) => findSecrets(entry, inherits, named, path));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, held]) =>
    findSecrets(held, inherits, (inherits && named) || SECRET_OPTION.test(name), path),
  );
}

function readPassword(text: string): string[] {
  const [, given] = /^[a-z][a-z0-9+.-]*:\/\/[^/@]*?:([^/]+)@/i.exec(text) ?? [];
  if (given === undefined) return [];
  try {
    return [given, decodeURIComponent(given)];
  } catch {
    return [given];
  }
}

/** YAML takes `apiKey:x`, without a blank, for a text. */
function readPair(text: string): string[] {
  const [, name = '', rest = ''] = /^([\w-]+)[:=](\S+)$/.exec(text) ?? [];
  return SECRET_OPTION.test(name) ? [rest] : [];
}

const WRITTEN_NAME = /(?<![\w-])([\w-]+)["']?[ \t]*[:=]/g;

/** The same in what is no YAML: all that is behind such a name on its line, and on lines that are further in. */
function findInText(text: string): string[] {
  const found = text.split(/[\s"']+/).flatMap(readPassword);
  let owner = Infinity;
  for (const line of text.split(/[\r\n]+/)) {
    const place = line.search(/[^ \t-]/);
    for (const word of splitWords(line)) for (const password of readPassword(word)) found.push(password);
    if (place > owner) {
      for (const value of splitValues(line)) found.push(value);
    } else if (place >= 0) owner = Infinity;
    for (const { 0: written, 1: name = '', index } of line.matchAll(WRITTEN_NAME)) {
      if (!SECRET_OPTION.test(name)) continue;
      owner = Math.min(owner, place);
      for (const value of splitValues(cutValue(line.slice(index + written.length).trim()))) found.push(value);
    }
  }
  return found.filter((value) => value !== '');
}

/** Without what is behind a text in quotes, a list or an object that ends there. */
function cutValue(rest: string): string {
  const [closed] = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|\{[^}]*\})(?=\s*(?:[,}\]#]|$))/.exec(rest) ?? [
    rest,
  ];
  return closed;
}

const splitWords = (text: string) => text.split(/[\s"',[\]{}]+/);

/** What may be a value in it: a word, a text with blanks, or what has a mark of YAML in it. */
const splitValues = (text: string) => [
  text,
  ...text.split(/["',[\]{}]+/).map((part) => part.trim()),
  ...splitWords(text),
];
