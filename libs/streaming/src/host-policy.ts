import { LOOPBACK_NAMES } from './loopback-names.js';
import { nameList } from './name-list.js';

/** The name of a `Host` header, without its port. */
function nameOf(host: string): string {
  if (host.startsWith('[')) return host.slice(0, host.indexOf(']') + 1);
  const colon = host.indexOf(':');
  return colon < 0 ? host : host.slice(0, colon);
}

/** Which `Host` a request may name: a page that rebinds its own name to this server is told apart here. */
export class HostPolicy {
  /** `null`: any. */
  private readonly allowed: ReadonlySet<string> | null;

  /** Nearly every request names the same host. */
  private lastPermitted: string | undefined;

  constructor(allowedHosts: readonly string[], loopbackOnly: boolean) {
    const listed = nameList(allowedHosts, 'allowedHosts');
    // A page cannot make a browser send a loopback name that is not its own, so those are always safe.
    if (listed.length > 0) this.allowed = new Set([...listed, ...LOOPBACK_NAMES]);
    else this.allowed = loopbackOnly ? LOOPBACK_NAMES : null;
  }

  permits(host: string | undefined): boolean {
    if (this.allowed === null) return true;
    if (host === undefined) return false;
    if (host === this.lastPermitted) return true;
    const given = host.trim().toLowerCase();
    if (!this.allowed.has(nameOf(given)) && !this.allowed.has(given)) return false;
    this.lastPermitted = host;
    return true;
  }
}
