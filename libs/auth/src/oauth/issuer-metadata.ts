import type { CryptoKey, JSONWebKeySet, JWSHeaderParameters } from 'jose';
import { ageClock, type ResolveHost } from '#core';
import { AuthenticationUnavailable, InvalidToken } from '../errors.js';
import { requestJson, isLoopbackUrl, isTrustworthyUrl } from './issuer-request.js';

export type IssuerDocument = Readonly<Record<string, unknown>>;

/** Milliseconds. */
const FRESHNESS = { refreshAfter: 600_000, usableFor: 86_400_000, cooldown: 10_000 };

/** The URLs of an issuer's metadata: RFC 8414, then both locations of OpenID Connect. */
export function wellKnownUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    ...new Set([
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ]),
  ];
}

type IssuerEndpoint =
  | 'jwks_uri'
  | 'introspection_endpoint'
  | 'authorization_endpoint'
  | 'token_endpoint'
  | 'userinfo_endpoint'
  | 'end_session_endpoint';

/** The metadata of an issuer. It is accepted only when its `issuer` equals the configured one. */
export class IssuerDocuments {
  private readonly document: RefreshedValue<IssuerDocument>;

  /** @param resolve default: as the system resolves names */
  constructor(
    private readonly issuer: string,
    private readonly resolve?: ResolveHost,
  ) {
    this.document = new RefreshedValue(() => this.discover(), FRESHNESS);
  }

  /** @throws AuthenticationUnavailable */
  current(): Promise<IssuerDocument> {
    return this.document.current();
  }

  /**
   * One of the endpoints. @throws AuthenticationUnavailable also when the metadata names none that may be requested
   */
  async endpoint(name: IssuerEndpoint): Promise<string> {
    const url = (await this.current())[name];
    // The metadata of a remote issuer must not lead to services of this machine.
    const isOwn = typeof url === 'string' && (!isLoopbackUrl(url) || isLoopbackUrl(this.issuer));
    if (isOwn && isTrustworthyUrl(url)) return url;
    throw new AuthenticationUnavailable(`${this.issuer} names no ${name} that can be asked`);
  }

  private async discover(): Promise<IssuerDocument> {
    let failure = 'no document';
    for (const url of wellKnownUrls(this.issuer)) {
      try {
        const { status, value } = await requestJson(url, { resolve: this.resolve });
        if (status === 200 && value?.['issuer'] === this.issuer) return value;
        failure = status === 200 ? 'a document of another issuer' : `status ${status}`;
      } catch (error) {
        if (!(error instanceof AuthenticationUnavailable)) throw error;
        failure = error.cause;
      }
    }
    throw new AuthenticationUnavailable(`${this.issuer} does not describe itself: ${failure}`);
  }
}

/** No issuer rotates through more keys. */
const MAX_KEYS = 100;

interface KeyRingOptions {
  /** Resolved at every fetch, because an issuer may move its keys. */
  readonly jwksUri: () => Promise<string>;
  /** Seconds that known keys are used when they cannot be fetched. */
  readonly outage: number;
  /** Milliseconds between two fetches. Default 30,000. */
  readonly cooldown?: number;
  readonly now?: () => number;
}

/** A key set as it was fetched. */
export interface Keys {
  /** @throws InvalidToken when no key matches, or more than one */
  find(header: JWSHeaderParameters): Promise<CryptoKey>;
}

/** Milliseconds. */
const REFRESH_INTERVAL = 600_000;

/** The public keys of an issuer, with rotation and outages. */
export class KeyRing {
  private readonly keys: RefreshedValue<Keys>;

  constructor({ jwksUri, outage, cooldown = 30_000, now }: KeyRingOptions) {
    const fetchKeys = async () => readKeys(await fetchKeySet(await jwksUri()));
    this.keys = new RefreshedValue(fetchKeys, {
      refreshAfter: Math.min(REFRESH_INTERVAL, outage * 1000),
      usableFor: outage * 1000,
      cooldown,
      ...(now && { now }),
    });
  }

  /** @throws AuthenticationUnavailable */
  current(): Promise<Keys> {
    return this.keys.current();
  }

  /**
   * Fetches again for a token with an unknown key, because the issuer may have rotated.
   * @throws AuthenticationUnavailable
   */
  fetchAgain(): Promise<Keys> {
    return this.keys.fetchAgain();
  }
}

async function fetchKeySet(url: string): Promise<JSONWebKeySet> {
  const { status, value } = await requestJson(url);
  const keys = value?.['keys'];
  if (status !== 200 || !Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS)
    throw new AuthenticationUnavailable(`no usable key set at ${new URL(url).host}`);
  return { keys } as JSONWebKeySet;
}

async function readKeys(set: JSONWebKeySet): Promise<Keys> {
  const { createLocalJWKSet, errors } = await import('jose');
  let local: ReturnType<typeof createLocalJWKSet>;
  try {
    local = createLocalJWKSet(set);
  } catch {
    throw new AuthenticationUnavailable('a malformed key set');
  }
  return {
    // Only `alg` and `kid` select a key: a key or URL inside the token comes from its sender.
    find: async ({ alg, kid }) => {
      try {
        return await local({ alg: alg as string, ...(kid !== undefined && { kid }) });
      } catch (error) {
        if (error instanceof errors.JOSEError) throw new InvalidToken(error.code);
        throw new InvalidToken('a key that cannot be used');
      }
    },
  };
}

/** Milliseconds. */
interface FreshnessOptions {
  /** Age from which on callers wait for the next value. One that is in use is fetched earlier, in the background. */
  readonly refreshAfter: number;
  /** Age up to which the value is used while it cannot be fetched. */
  readonly usableFor: number;
  /** Minimum time between two fetches, including failed ones, however many callers ask. */
  readonly cooldown: number;
  /** Default: `ageClock`. */
  readonly now?: () => number;
}

/** Milliseconds between two attempts while no value is usable. */
const SHORT_COOLDOWN = 1_000;

/** Part of `refreshAfter` after which a value that is in use is fetched ahead of time. */
const REFRESH_SHARE = 2 / 3;

/**
 * A fetched value with a bounded lifetime. During an outage of its source the last value is used up to `usableFor`,
 * and none after that.
 */
class RefreshedValue<T> {
  private known: { readonly value: T; readonly at: number } | null = null;
  private lastAttempt = -Infinity;
  private lastFailure = -Infinity;
  private fetching: Promise<void> | null = null;
  private failure = 'never fetched';
  private readonly now: () => number;

  constructor(
    private readonly fetchAnew: () => Promise<T>,
    private readonly options: FreshnessOptions,
  ) {
    this.now = options.now ?? ageClock;
  }

  /** @throws AuthenticationUnavailable when no value is usable */
  async current(): Promise<T> {
    const usable = this.usable();
    if (usable && (this.measureAge(usable) < this.options.refreshAfter || this.isAway())) {
      if (this.measureAge(usable) >= this.options.refreshAfter * REFRESH_SHARE) void this.renew();
      return usable.value;
    }
    await this.renew();
    const renewed = this.usable();
    if (!renewed) throw new AuthenticationUnavailable(this.failure);
    return renewed.value;
  }

  /**
   * Fetches again because the known value seems outdated. Within the cooldown the known value is returned.
   * @throws AuthenticationUnavailable
   */
  async fetchAgain(): Promise<T> {
    await this.renew();
    return this.current();
  }

  private usable() {
    return this.known && this.measureAge(this.known) < this.options.usableFor ? this.known : null;
  }

  /** The last attempt has just failed: callers do not wait for the next one. */
  private isAway(): boolean {
    return this.now() - this.lastFailure < 2 * this.options.cooldown;
  }

  private measureAge({ at }: { readonly at: number }): number {
    return this.now() - at;
  }

  private async renew(): Promise<void> {
    if (this.fetching) return this.fetching;
    // Without a usable value a long cooldown would prolong the outage.
    const cooldown = this.usable() ? this.options.cooldown : Math.min(this.options.cooldown, SHORT_COOLDOWN);
    if (this.now() - this.lastAttempt < cooldown) return;
    const at = this.now();
    this.lastAttempt = at;
    this.fetching = this.fetchAnew()
      .then(
        (value) => {
          this.known = { value, at };
          this.lastFailure = -Infinity;
        },
        (error: unknown) => {
          this.lastFailure = this.now();
          this.failure = error instanceof AuthenticationUnavailable ? error.cause : String(error);
        },
      )
      .finally(() => {
        this.fetching = null;
      });
    return this.fetching;
  }
}
