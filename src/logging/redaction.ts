import { isSection } from '#config';

const HIDDEN = '[redacted]';

/** Names of members and settings whose values are credentials, in any context. */
const SECRET_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-mcp-api-key|x-parse-(?:session-token|master-key|rest-api-key|javascript-key)|api_?key|master_?key|rest_?api_?key|state_?key|session_?token|access_?token|refresh_?token|id_?token|client_?secret|password|passwd|secret|token)$/i;

/** Credentials in running text, each pattern with a bounded length. */
const PATTERNS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // A URI with a user name or password in it.
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@"'<>]{1,512}@/gi, `$1${HIDDEN}@`],
  [/\b(Bearer|Basic)\s{1,4}[A-Za-z0-9._~+/=-]{4,8192}/gi, `$1 ${HIDDEN}`],
  [/\beyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{1,8192}\.[A-Za-z0-9_-]{0,8192}/g, HIDDEN],
  [/\br:[A-Za-z0-9]{16,64}\b/g, `r:${HIDDEN}`],
  [
    /\b((?:proxy-)?authorization|(?:set-)?cookie|x-mcp-api-key|x-parse-(?:session-token|master-key|rest-api-key|javascript-key))(["']?\s{0,4}[:=]\s{0,4}["']?)[^\s"',;]{1,8192}/gi,
    `$1$2${HIDDEN}`,
  ],
  [
    /(["'])(api_?key|master_?key|state_?key|session_?token|access_?token|refresh_?token|client_?secret|password|passwd|secret|token)\1(\s{0,4}:\s{0,4})(["'])(?:(?!\4)[^\\]|\\.){0,8192}\4/gi,
    `$1$2$1$3$4${HIDDEN}$4`,
  ],
  [
    /\b(api_?key|master_?key|session_?token|access_?token|refresh_?token|client_?secret|password|passwd|secret|token)=[^\s&"',;]{1,8192}/gi,
    `$1=${HIDDEN}`,
  ],
];

/** Minimum characters of a secret: a shorter one may occur by chance. */
const SHORTEST_SECRET = 8;
/** Maximum characters of one line; a longer line is cut before any pattern runs. */
const LONGEST_LINE = 65_536;
const DEEPEST = 6;
/** Characters of a line that is remembered as clean, and the number of such lines. */
const LONGEST_CLEAN = 80;
const MOST_CLEAN = 200;

/** Removes credentials from log output: by member name, by pattern, and the known values of the configuration. */
export class Redaction {
  private readonly secrets: readonly string[];
  /** Short lines in which nothing was found: the same few are written with every call. */
  private readonly clean = new Set<string>();

  /** @param secrets known values; short ones are not searched */
  constructor(secrets: Iterable<string> = []) {
    const long = [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_SECRET);
    // The longest first: one may be the prefix of another.
    this.secrets = long.sort((one, other) => other.length - one.length);
  }

  text(line: string): string {
    if (this.clean.has(line)) return line;
    let safe = line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
    for (const secret of this.secrets) if (safe.includes(secret)) safe = safe.replaceAll(secret, HIDDEN);
    for (const [pattern, replacement] of PATTERNS) safe = safe.replace(pattern, replacement);
    if (safe === line && line.length <= LONGEST_CLEAN) {
      if (this.clean.size >= MOST_CLEAN) this.clean.clear();
      this.clean.add(line);
    }
    return safe;
  }

  value(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function')
      return String(value);
    if (value === null || typeof value !== 'object') return value;
    if (value instanceof Error) return this.text(`${value.name}: ${value.message}`);
    if (depth >= DEEPEST) return '[…]';
    if (Array.isArray(value)) return value.slice(0, 100).map((one) => this.value(one, depth + 1));
    const members = Object.entries(value).slice(0, 100);
    return Object.fromEntries(
      members.map(([name, member]) => [
        name,
        SECRET_NAME.test(name) ? HIDDEN : this.value(member, depth + 1),
      ]),
    );
  }
}

/** Every credential of a configuration by its name, and the passwords of its URIs. */
export function secretsIn(config: unknown, below = false): string[] {
  if (typeof config === 'string') return below ? [config] : passwordOf(config);
  if (Array.isArray(config)) return config.flatMap((entry) => secretsIn(entry, below));
  if (!isSection(config)) return [];
  return Object.entries(config).flatMap(([name, value]) =>
    secretsIn(value, below || SECRET_NAME.test(name) || name === 'headers' || name === 'previousStateKeys'),
  );
}

function passwordOf(text: string): string[] {
  const [, given] = /^[a-z][a-z0-9+.-]*:\/\/[^/@]*?:([^/]+)@/i.exec(text) ?? [];
  if (given === undefined) return [];
  try {
    return [given, decodeURIComponent(given)];
  } catch {
    return [given];
  }
}
