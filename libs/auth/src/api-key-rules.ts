import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { Agent, type AgentDefinition, type Identity } from '#core';
import { AuthRule } from './authenticator.js';
import { type Credentials, presentedKey, remoteNetwork } from './credentials.js';
import { isKeyOf, type KeyHash, parseKeyHash, slowComparisons } from './key-hash.js';

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

/** A shared key. Keys are compared in constant time as digests of equal length; the key itself is not kept. */
export class ApiKeyRule extends AuthRule {
  private readonly expected: Buffer;
  private readonly principal: string;

  constructor(
    key: string,
    private readonly shape: AgentDefinition,
    private readonly identity: Identity,
  ) {
    super();
    if (key.trim() === '') throw new TypeError('an API key must not be blank');
    this.expected = digest(key);
    this.principal = `key:${this.expected.toString('hex').slice(0, 16)}`;
  }

  recognise(credentials: Credentials): Agent | null {
    const key = presentedKey(credentials);
    if (key === undefined || !timingSafeEqual(digest(key), this.expected)) return null;
    return new Agent({ shape: this.shape, identity: this.identity, principal: this.principal });
  }
}

/** Characters. A longer text is not compared. */
const MAX_KEY = 1_024;

const SIGNED_TOKEN = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/;

/** A shared key that is configured as a hash. */
export class HashedKeyRule extends AuthRule {
  private readonly known: KeyHash;
  private readonly principal: string;

  /** @throws TypeError when the text is not a key hash */
  constructor(
    hash: string,
    private readonly shape: AgentDefinition,
    private readonly identity: Identity,
  ) {
    super();
    this.known = parseKeyHash(hash);
    // The principal equals that of the same key in clear text. For a slow hash, a digest of the key would help
    // guessing it.
    const digest =
      this.known.kind === 'sha256' ? this.known.digest : createHash('sha256').update(hash).digest();
    this.principal = `key:${digest.toString('hex').slice(0, 16)}`;
  }

  /** @throws AuthenticationUnavailable while too many unknown keys wait for a comparison */
  async recognise(credentials: Credentials, recognisedElsewhere = false): Promise<Agent | null> {
    const key = this.keyOf(credentials);
    if (key === undefined || !(await this.matches(key, credentials, recognisedElsewhere))) return null;
    return new Agent({ shape: this.shape, identity: this.identity, principal: this.principal });
  }

  override isSettled(credentials: Credentials): boolean {
    const key = this.keyOf(credentials);
    return this.known.kind === 'sha256' || key === undefined || slowComparisons.isKnown(key, this.known);
  }

  /** The key to compare; undefined when the credential cannot belong to this rule. */
  private keyOf(credentials: Credentials): string | undefined {
    const key = presentedKey(credentials);
    if (key === undefined || key.length > MAX_KEY) return undefined;
    // A signed token belongs to another rule, and every new one would cost a slow comparison.
    return this.known.kind === 'scrypt' && SIGNED_TOKEN.test(key) ? undefined : key;
  }

  private matches(
    key: string,
    { remoteAddress }: Credentials,
    recognisedElsewhere: boolean,
  ): Promise<boolean> {
    const { known } = this;
    if (known.kind === 'sha256') return isKeyOf(key, known);
    return slowComparisons.matches(key, known, {
      network: remoteNetwork(remoteAddress),
      recognisedElsewhere,
    });
  }
}
