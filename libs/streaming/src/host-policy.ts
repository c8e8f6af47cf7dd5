import { isIPv6 } from 'node:net';
import { LOOPBACK_NAMES } from './loopback-names.js';
import { nameList } from './name-list.js';

/** A name or an IPv4 address, or an IPv6 address in brackets; then a port, where there is one. No user, zone, path or space. */
const HOST = /^(?:([a-z0-9._~-]+)|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?$/;

interface NamedHost {
  /** In lower case; an IPv6 address in its shortest form and in brackets. */
  readonly name: string;
  /** Name and port, where there is one. */
  readonly whole: string;
}

/** Reads a `Host` header; null: it is none by RFC 9110. */
function readHost(header: string): NamedHost | null {
  const text = header.trim().toLowerCase();
  const [, plain, address, port] = HOST.exec(text) ?? [];
  const name = plain ?? (address !== undefined && isIPv6(address) ? shortest(address) : undefined);
  if (name === undefined || Number(port ?? 0) > 65_535) return null;
  return { name, whole: port === undefined ? name : `${name}:${port}` };
}

const shortest = (address: string) => new URL(`http://[${address}]`).hostname;

/** `malformed`: no host at all; `foreign`: a host, and not one of ours. */
export type HostVerdict = 'permitted' | 'malformed' | 'foreign';

/** Which `Host` a request may name: a page that rebinds its own name to this server is told apart here. */
export class HostPolicy {
  /** `null`: any. */
  private readonly allowed: ReadonlySet<string> | null;

  /** Nearly every request names the same host. */
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
