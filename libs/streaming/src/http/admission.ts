import { isIPv6 } from 'node:net';
import type { Reply } from '../message.js';
import { serverBusy, streamShareTaken } from './refusals.js';

/* Whom an edge admits: by the host that a request names, by the page that asks, and by the streams that are open already. */

/** Host names that cannot leave this machine, as written in a URL. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Trimmed, lower-cased, without blanks. */
const readNames = (values: readonly string[]): string[] =>
  values.map((value) => value.trim().toLowerCase()).filter((value) => value !== '');

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

/** `expectMalformed`: not a host; `foreign`: a host that is not allowed. */
export type HostVerdict = 'permitted' | 'malformed' | 'foreign';

/** The `Host` names that a request may use: a page that rebinds its own name to this server is refused here. */
export class HostPolicy {
  /** `null`: any. */
  private readonly allowed: ReadonlySet<string> | null;

  /** Caches the last result: nearly every request names the same host. */
  private lastPermitted: string | undefined;

  constructor(allowedHosts: readonly string[], loopbackOnly: boolean) {
    const listed = readNames(allowedHosts).map((entry) => readHost(entry)?.whole ?? entry);
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
  /** Whether origins are listed at all. */
  readonly isList: boolean;

  constructor(
    allowedOrigins: readonly string[],
    private readonly loopbackOnly: boolean,
  ) {
    const listed = readNames(allowedOrigins);
    this.exact = new Set(listed.filter((entry) => !entry.startsWith('.')));
    this.domains = listed.filter((entry) => entry.startsWith('.'));
    this.isList = listed.length > 0;
  }

  /** Whether this origin is listed, and not only permitted because no origin is. */
  lists(header: string): boolean {
    return this.isList && this.isListed(header.trim().toLowerCase());
  }

  permits(header: string | undefined): boolean {
    const origin = header?.trim().toLowerCase() ?? '';
    if (origin === '') return true;
    if (this.isList) return this.isListed(origin);
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

/** The part of the places that one principal may hold. */
const PRINCIPAL_SHARE = 1 / 4;

/** Why a principal gets no place: there is none, or it holds its share of them. */
type PlaceLack = 'full' | 'share';

/** The places of one kind of streams in this process. Each principal has a share, so that none of them takes all places. */
export class StreamPlaces {
  /** Places that one principal may hold. */
  readonly share: number;
  private readonly held = new Map<string, number>();
  private taken = 0;

  /** @param total null: unbounded */
  constructor(private readonly total: number | null) {
    this.share = total === null ? Infinity : Math.max(1, Math.floor(total * PRINCIPAL_SHARE));
  }

  get open(): number {
    return this.taken;
  }

  /** @returns null when the principal may open another stream */
  findLack(principal: string): PlaceLack | null {
    if (this.total !== null && this.taken >= this.total) return 'full';
    return (this.held.get(principal) ?? 0) >= this.share ? 'share' : null;
  }

  /** The caller has called `findLack`. @returns a function that gives the place back; it is called once */
  take(principal: string): () => void {
    this.taken += 1;
    this.held.set(principal, (this.held.get(principal) ?? 0) + 1);
    return () => {
      this.taken -= 1;
      const left = (this.held.get(principal) ?? 0) - 1;
      if (left > 0) this.held.set(principal, left);
      else this.held.delete(principal);
    };
  }
}

/** @returns the refusal of a stream that may not be opened; null: it may */
export function refuseStream(places: StreamPlaces, principal: string, id: unknown): Reply | null {
  const lack = places.findLack(principal);
  if (lack === 'share') return streamShareTaken(places.share, id);
  return lack && serverBusy(id);
}
