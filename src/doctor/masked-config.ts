import type { ConfigReference } from '#config';

/** Replaces a secret. */
export const MASK = '***';

const SECRET_NAME =
  /(key|keys|secret|secrets|token|tokens|password|passphrase|credential|credentials|hash)$/i;

/** Parameters of a connection string that configure the connection; any other may be a credential. */
const PLAIN_PARAMETERS =
  /^(authSource|authMechanism|replicaSet|tls|ssl|directConnection|retryWrites|retryReads|w|readPreference|readConcernLevel|maxPoolSize|minPoolSize|appName|connectTimeoutMS|socketTimeoutMS|serverSelectionTimeoutMS|compressors|loadBalanced|srvServiceName|family|db)$/;

/** The source of an option's value. */
type Origin = 'default' | 'file' | `environment ${string}` | `file, from ${string}`;

export interface ConfigLine {
  /** Dotted path. */
  readonly path: string;
  /** The value with secrets masked. */
  readonly value: unknown;
  readonly origin: Origin;
}

export interface ConfigSources {
  /** The file as read, with references replaced. */
  readonly raw: unknown;
  readonly references: readonly ConfigReference[];
  /** The variable that overrides an option: `NAME` or `NAME_FILE`. */
  readonly overlay: (path: string) => string | null;
}

/** Every effective option, one line each, secrets masked. */
export function maskConfig(config: object, sources: ConfigSources): ConfigLine[] {
  return listLeaves(config, []).map(({ path, value }) => ({
    path: path.join('.'),
    value: maskValue(path, value, sources),
    origin: findOrigin(path, sources),
  }));
}

/**
 * Every text that must not be shown anywhere, whole or as a part of an address. Longer ones come first: where one secret is a part of
 * another, removing the shorter one first would leave the rest of the longer one.
 */
export function listSecrets(config: object, sources: ConfigSources): string[] {
  const secrets = listLeaves(config, []).flatMap((leaf) => {
    const values: unknown[] = Array.isArray(leaf.value) ? leaf.value : [leaf.value];
    return values.flatMap((value, at) => {
      if (typeof value !== 'string') return [];
      const path = Array.isArray(leaf.value) ? [...leaf.path, String(at)] : leaf.path;
      if (isSecret(path, value, sources)) return [value];
      const password = /^[a-z+]+:\/\/[^@/]*?:([^@]+)@/i.exec(value)?.[1];
      return password === undefined ? [] : [password, decodeText(password)];
    });
  });
  return [...new Set(secrets)].sort((one, other) => other.length - one.length);
}

function maskValue(path: readonly string[], value: unknown, sources: ConfigSources): unknown {
  if (Array.isArray(value)) return value.map((one, at) => maskValue([...path, String(at)], one, sources));
  return isSecret(path, value, sources) ? MASK : showValue(path, value);
}

interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
}

function listLeaves(value: unknown, path: readonly string[]): Leaf[] {
  const isList = Array.isArray(value) && value.every((one) => one === null || typeof one !== 'object');
  const isNode = value !== null && typeof value === 'object' && !isList;
  const entries = isNode ? Object.entries(value) : [];
  if (entries.length === 0) return path.length === 0 ? [] : [{ path, value }];
  return entries.flatMap(([key, member]) => listLeaves(member, [...path, key]));
}

function isSecret(path: readonly string[], value: unknown, { references, overlay }: ConfigSources): boolean {
  if (typeof value !== 'string' || value === '') return false;
  const name = path.join('.');
  if (path.includes('requireCustomHeader') && path.length > 2) return true;
  if (path.some((part) => SECRET_NAME.test(part) && part !== 'tokens')) return true;
  if (overlay(name)?.endsWith('_FILE')) return !isAddress(value);
  return references.some(
    (one) =>
      one.path === name &&
      (one.kind === 'file' || (one.kind === 'environment' && SECRET_NAME.test(one.name))) &&
      !isAddress(value),
  );
}

const isAddress = (value: string) => /^[a-z+]+:\/\//i.test(value);

function showValue(path: readonly string[], value: unknown): unknown {
  if (typeof value !== 'string' || !isAddress(value)) return value;
  if (isWebhook(path)) return `${/^[a-z+]+:\/\//i.exec(value)?.[0] ?? ''}${MASK}`;
  return withoutCredentials(value);
}

/** Webhook addresses are credentials, including those of audit sinks. */
function isWebhook(path: readonly string[]): boolean {
  return path.some((part) => /webhook/i.test(part)) || (path[0] === 'audit' && path.at(-1) === 'url');
}

function withoutCredentials(address: string): string {
  const scheme = /^[a-z+]+:\/\//i.exec(address)?.[0] ?? '';
  const rest = address.slice(scheme.length);
  // Up to the last one: an unencoded password may contain one.
  const at = rest.lastIndexOf('@');
  const [place, query] = rest.slice(at + 1).split('?', 2) as [string, string?];
  const parameters = query?.split('&').map((parameter) => {
    const [name = ''] = parameter.split('=', 1);
    return PLAIN_PARAMETERS.test(name) ? parameter : `${name}=${MASK}`;
  });
  return `${scheme}${at < 0 ? '' : `${MASK}@`}${place}${parameters ? `?${parameters.join('&')}` : ''}`;
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function findOrigin(path: readonly string[], { raw, references, overlay }: ConfigSources): Origin {
  const name = path.join('.');
  const variable = overlay(name);
  if (variable !== null) return `environment ${variable}`;
  const from = references.filter(
    (one) => one.kind !== 'fallback' && (one.path === name || one.path.startsWith(`${name}.`)),
  );
  if (from.length > 0)
    return `file, from ${from.map((one) => (one.kind === 'file' ? one.name : `environment ${one.name}`)).join(', ')}`;
  return isInside(raw, path) ? 'file' : 'default';
}

function isInside(raw: unknown, path: readonly string[]): boolean {
  let at = raw;
  for (const part of path) {
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, part)) return false;
    at = (at as Record<string, unknown>)[part];
  }
  return true;
}
