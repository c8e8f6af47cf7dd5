import { isIPv6 } from 'node:net';

/** Host names that cannot leave this machine, as written in a URL. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Trimmed, lower-cased, without blanks. @throws TypeError naming the option */
function nameList(values: readonly string[], option: string): string[] {
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'string')) {
    throw new TypeError(`${option}: expected a list of names`);
  }
  return values.map((value) => value.trim().toLowerCase()).filter((value) => value !== '');
}

/** A name or an IPv4 address, or an IPv6 address in brackets; then a port, where there is one. No user, zone, path or space. */
const HOST = /^(?:([a-z0-9._~-]+)|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?$/;

interface NamedHost {
  /** In lower case; an IPv6 address in its shortest form and in brackets. */
  readonly name: string;
  /** Name and port, where there is one. */
  readonly whole: string;
}

/** Parses a `Host` header; null: it is invalid by RFC 9110. */
function readHost(header: string): NamedHost | null {
  const text = header.trim().toLowerCase();
  const [, plain, address, port] = HOST.exec(text) ?? [];
  const name = plain ?? (address !== undefined && isIPv6(address) ? shortest(address) : undefined);
  if (name === undefined || Number(port ?? 0) > 65_535) return null;
  return { name, whole: port === undefined ? name : `${name}:${port}` };
}

const shortest = (address: string) => new URL(`http://[${address}]`).hostname;

/** `malformed`: not a host; `foreign`: a host that is not allowed. */
export type HostVerdict = 'permitted' | 'malformed' | 'foreign';

/** The `Host` names that a request may use: a page that rebinds its own name to this server is refused here. */
export class HostPolicy {
  /** `null`: any. */
  private readonly allowed: ReadonlySet<string> | null;

  /** Caches the last result: nearly every request names the same host. */
  private lastPermitted: string | undefined;

  constructor(allowedHosts: readonly string[], loopbackOnly: boolean) {
    const listed = nameList(allowedHosts, 'allowedHosts').map((entry) => readHost(entry)?.whole ?? entry);
    // A page cannot make a browser send a loopback name that is not its own, so those are always safe.
    if (listed.length > 0) this.allowed = new Set([...listed, ...LOOPBACK_NAMES]);
    else this.allowed = loopbackOnly ? LOOPBACK_NAMES : null;
  }

  judge(header: string | undefined): HostVerdict {
    if (header === undefined) return this.allowed === null ? 'permitted' : 'foreign';
    if (header === this.lastPermitted) return 'permitted';
    const host = readHost(header);
    if (!host) return 'malformed';
    if (this.allowed !== null && !this.allowed.has(host.name) && !this.allowed.has(host.whole))
      return 'foreign';
    this.lastPermitted = header;
    return 'permitted';
  }
}

function webHost(origin: string): string | null {
  const url = URL.canParse(origin) ? new URL(origin) : null;
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? url.hostname : null;
}

/** The origins of pages that may call. Programs send no `Origin` and are not affected. */
export class OriginPolicy {
  private readonly exact: ReadonlySet<string>;
  private readonly domains: readonly string[];

  constructor(
    allowedOrigins: readonly string[],
    private readonly loopbackOnly: boolean,
  ) {
    const listed = nameList(allowedOrigins, 'allowedOrigins');
    this.exact = new Set(listed.filter((entry) => !entry.startsWith('.')));
    this.domains = listed.filter((entry) => entry.startsWith('.'));
  }

  permits(header: string | undefined): boolean {
    const origin = header?.trim().toLowerCase() ?? '';
    if (origin === '') return true;
    if (this.exact.size > 0 || this.domains.length > 0) return this.isListed(origin);
    if (!this.loopbackOnly) return true;
    return URL.canParse(origin) && LOOPBACK_NAMES.has(new URL(origin).hostname);
  }

  private isListed(origin: string): boolean {
    if (origin === 'null') return false;
    if (this.exact.has(origin)) return true;
    const host = this.domains.length > 0 ? webHost(origin) : null;
    return host !== null && this.domains.some((domain) => host === domain.slice(1) || host.endsWith(domain));
  }
}
