import { createHash } from 'node:crypto';
import { Agent, type AgentShape, type Identity } from '#agent';
import { AuthenticationUnavailable } from './authentication-faults.js';
import { AuthRule } from './auth-rule.js';
import { type Credentials, presentedKey } from './credentials.js';
import { digestOf, isKeyOf, type KeyHash, parseKeyHash } from './key-hash.js';

/** Keys looked at before, right and wrong ones; the oldest gives way. */
const MAX_KNOWN = 1_000;
/** Slow comparisons at once in this process: more would starve everything else that uses its threads. */
const MAX_AT_ONCE = 2;
/** Characters; nothing longer is anybody's key. */
const MAX_KEY = 1_024;

const SIGNED_TOKEN = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/;

let comparing = 0;

/** A shared key of which only a hash is known. */
export class HashedKeyRule extends AuthRule {
  private readonly known: KeyHash;
  private readonly principal: string;
  /** Verdicts by digest, so that a slow comparison is made once per key and not once per call. */
  private readonly verdicts = new Map<string, boolean>();

  /** @throws TypeError for a text that is no hash of a key */
  constructor(
    hash: string,
    private readonly shape: AgentShape,
    private readonly identity: Identity,
  ) {
    super();
    this.known = parseKeyHash(hash);
    // The principal of the same key in clear, for a key that cannot be guessed; of any other a digest would help guessing.
    const digest =
      this.known.kind === 'sha256' ? this.known.digest : createHash('sha256').update(hash).digest();
    this.principal = `key:${digest.toString('hex').slice(0, 16)}`;
  }

  /** @throws AuthenticationUnavailable while too many unknown keys are being looked at */
  async recognise(credentials: Credentials): Promise<Agent | null> {
    const key = presentedKey(credentials);
    if (key === undefined || key.length > MAX_KEY || !(await this.fits(key))) return null;
    return new Agent({ shape: this.shape, identity: this.identity, principal: this.principal });
  }

  private async fits(key: string): Promise<boolean> {
    if (this.known.kind === 'sha256') return isKeyOf(key, this.known);
    // Another rule's business: every new one would cost a slow comparison.
    if (SIGNED_TOKEN.test(key)) return false;
    const digest = digestOf(key).toString('base64');
    const before = this.verdicts.get(digest);
    if (before !== undefined) return before;
    const verdict = await atMostSoMany(() => isKeyOf(key, this.known));
    this.remember(digest, verdict);
    return verdict;
  }

  /** The right key stays known however many wrong ones are tried. */
  private remember(digest: string, verdict: boolean): void {
    if (this.verdicts.size >= MAX_KNOWN) {
      for (const [oldest, fitted] of this.verdicts) {
        if (fitted) continue;
        this.verdicts.delete(oldest);
        break;
      }
    }
    this.verdicts.set(digest, verdict);
  }
}

async function atMostSoMany<T>(work: () => Promise<T>): Promise<T> {
  if (comparing >= MAX_AT_ONCE) throw new AuthenticationUnavailable('too many unknown keys at once');
  comparing += 1;
  try {
    return await work();
  } finally {
    comparing -= 1;
  }
}
