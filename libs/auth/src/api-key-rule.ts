import { hash, timingSafeEqual } from 'node:crypto';
import { Agent, type AgentShape, type Identity } from '#agent';
import { AuthRule } from './auth-rule.js';
import { type Credentials, presentedKey } from './credentials.js';

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

/** A shared key. Compared as digests of equal length in constant time; the key itself is not kept. */
export class ApiKeyRule extends AuthRule {
  private readonly expected: Buffer;
  private readonly principal: string;

  constructor(
    key: string,
    private readonly shape: AgentShape,
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
