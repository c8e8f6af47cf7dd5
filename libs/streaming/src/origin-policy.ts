import { LOOPBACK_NAMES } from './loopback-names.js';
import { nameList } from './name-list.js';

function webHost(origin: string): string | null {
  const url = URL.canParse(origin) ? new URL(origin) : null;
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? url.hostname : null;
}

/** Which pages may call. Programs send no `Origin` and are not concerned. */
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
