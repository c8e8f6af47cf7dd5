import { Agent, endClock, toAgentOptions } from '#core';
import { AuthRule } from './authenticator.js';
import type { Credentials } from './credentials.js';
import { ExpiredCredential } from './errors.js';

/** What a rule says of its credential. */
export interface NamedCredential {
  readonly name: string;
  /** A date, or a time in ISO 8601 with its zone. Default: it has no end. */
  readonly expires?: string;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME_WITH_ZONE = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/;

/** Milliseconds since 1970; a date is its beginning in UTC. @throws TypeError for text that is neither a date nor a time with its zone */
export function parseExpiry(text: string): number {
  const day = DATE.test(text) ? text : TIME_WITH_ZONE.exec(text)?.[1];
  const isDay = day !== undefined && toDay(Date.parse(`${day}T00:00:00Z`)) === day;
  const time = isDay ? Date.parse(text === day ? `${day}T00:00:00Z` : text) : Number.NaN;
  if (Number.isNaN(time))
    throw new TypeError('must be a date (2027-01-31) or a time with its zone (2027-01-31T18:00:00Z)');
  return time;
}

/** A day that does not exist would be taken for one of the next month. */
const toDay = (time: number): string => (Number.isNaN(time) ? '' : new Date(time).toISOString().slice(0, 10));

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
