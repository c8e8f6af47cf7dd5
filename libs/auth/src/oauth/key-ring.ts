import type { JSONWebKeySet, JWSHeaderParameters, CryptoKey } from 'jose';
import { AuthenticationUnavailable, InvalidToken } from '../authentication-faults.js';
import { askForJson } from './bounded-json.js';
import { KeptFresh } from './kept-fresh.js';

/** More than any issuer rotates through. */
const MAX_KEYS = 100;

export interface KeyRingOptions {
  /** Asked at every fetch, so that an issuer may move its keys. */
  readonly jwksUri: () => Promise<string>;
  /** Seconds that keys serve on when they cannot be fetched. */
  readonly outage: number;
  /** Milliseconds between two fetches. Default 30,000. */
  readonly cooldown?: number;
  readonly now?: () => number;
}

/** The keys of one fetch. */
export interface Keys {
  /** @throws InvalidToken when none of them, or more than one, is meant */
  find(header: JWSHeaderParameters): Promise<CryptoKey>;
}

/** Milliseconds. */
const REFRESH = 600_000;

/** The public keys of an issuer, under rotation and outage. */
export class KeyRing {
  private readonly keys: KeptFresh<Keys>;

  constructor({ jwksUri, outage, cooldown = 30_000, now }: KeyRingOptions) {
    const fetchKeys = async () => keysOf(await fetchedSet(await jwksUri()));
    this.keys = new KeptFresh(fetchKeys, {
      refreshAfter: Math.min(REFRESH, outage * 1000),
      usableFor: outage * 1000,
      cooldown,
      ...(now && { now }),
    });
  }

  /** @throws AuthenticationUnavailable */
  current(): Promise<Keys> {
    return this.keys.current();
  }

  /** For a token whose key is not known: the issuer may have rotated. @throws AuthenticationUnavailable */
  renewed(): Promise<Keys> {
    return this.keys.renewed();
  }
}

async function fetchedSet(url: string): Promise<JSONWebKeySet> {
  const { status, value } = await askForJson(url);
  const keys = value?.['keys'];
  if (status !== 200 || !Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS)
    throw new AuthenticationUnavailable(`no usable key set at ${new URL(url).host}`);
  return { keys } as JSONWebKeySet;
}

async function keysOf(set: JSONWebKeySet): Promise<Keys> {
  const { createLocalJWKSet, errors } = await import('jose');
  let local: ReturnType<typeof createLocalJWKSet>;
  try {
    local = createLocalJWKSet(set);
  } catch {
    throw new AuthenticationUnavailable('a malformed key set');
  }
  return {
    // `alg` and `kid` alone choose: a key or an address inside the token is nobody's word but the sender's.
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
