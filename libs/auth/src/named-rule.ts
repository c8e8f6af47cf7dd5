import { Agent, endClock, MOMENT_RULE, readMoment, toAgentOptions } from '#core';
import { AuthRule } from './authenticator.js';
import type { Credentials } from './credentials.js';
import { ExpiredCredential } from './errors.js';

/** What a rule says of its credential. */
export interface NamedCredential {
  readonly name: string;
  /** A date, or a time in ISO 8601 with its zone. Default: it has no end. */
  readonly expires?: string;
}

/** Milliseconds since 1970. @throws TypeError for text that is neither a date nor a time with its zone */
export function parseExpiry(text: string): number {
  const time = readMoment(text);
  if (time === null) throw new TypeError(`must be ${MOMENT_RULE}`);
  return time;
}

/**
 * A rule whose credential has a name in records, and may have an end: after it, its callers are refused. It is around the rule that
 * recognises the credential itself, so that no session is looked for or made for a caller whose key is over.
 */
export class NamedRule extends AuthRule {
  override readonly keyDigest: string | undefined;
  private readonly name: string;
  private readonly end: number;

  /** @throws TypeError when `expires` is no time */
  constructor(
    private readonly rule: AuthRule,
    { name, expires }: NamedCredential,
    private readonly now: () => number = endClock,
  ) {
    super();
    this.keyDigest = rule.keyDigest;
    this.name = name;
    this.end = expires === undefined ? Infinity : parseExpiry(expires);
  }

  /** @throws ExpiredCredential when the credential is right and over */
  async recognise(credentials: Credentials, recognisedElsewhere?: boolean): Promise<Agent | null> {
    if (this.isOver) {
      if (await this.rule.knows(credentials)) throw new ExpiredCredential(this.name);
      return null;
    }
    const agent = await this.rule.recognise(credentials, recognisedElsewhere);
    return agent && new Agent({ ...toAgentOptions(agent), keyName: this.name });
  }

  override isSettled(credentials: Credentials): boolean {
    return this.rule.isSettled(credentials);
  }

  override async knows(credentials: Credentials): Promise<boolean> {
    return !this.isOver && this.rule.knows(credentials);
  }

  private get isOver(): boolean {
    return this.now() >= this.end;
  }
}
