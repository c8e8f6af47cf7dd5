import { Inject, Injectable, Logger } from '@nestjs/common';
import type { IncomingMessage } from 'node:http';
import {
  Authenticator,
  AuthenticationUnavailable,
  InvalidToken,
  isSameText,
  type OidcClient,
  type PendingSignIn,
  RecordedAuthenticator,
} from '#auth';
import { SealedText, StateKeys } from '#dispatcher';
import { SharedState } from '#state';
import { NotServed, notServed, remoteNetwork, readTrustedHeaders } from '#streaming';
import { OperatorGate, OperatorNotes } from './operator-gate.js';
import {
  type ConsolePlace,
  isLoopbackName,
  OperatorSessions,
  ownName,
  pathOfConsole,
  readPlace,
  readCookie,
  toSealContext,
} from './operator-sessions.js';

/** Sign-in with an issuer of OpenID Connect. */
export interface OidcSetting {
  readonly issuer: string;
  readonly client: OidcClient;
  /** The host name of the redirect URI: a session is valid under it alone. */
  readonly host: string;
  /** Milliseconds after which a person has to sign in again. */
  readonly longest: number;
}

/** Injection token of `OidcSetting`, or of null where no issuer is configured. */
export const OIDC_SETTING = Symbol('OIDC setting');

/** Why nobody was signed in, as the page receives it. */
export type SignInRefusal =
  'denied' | 'no_operator' | 'expired' | 'mismatch' | 'invalid' | 'unavailable' | 'wrong_host' | 'too_many';

/** A redirect of the browser. Its address is a constant, or the issuer's. */
interface Redirect {
  readonly location: string;
  readonly cookies: readonly string[];
}

const pathOfSignIn = (place: ConsolePlace): string => `${pathOfConsole(place)}/session/oidc`;
/** Milliseconds for the sign-in at the issuer. */
const MAX_SIGN_IN_TIME = 600_000;

interface SealedSignIn extends PendingSignIn {
  readonly until: number;
}

/** No other host, a subdomain included, can set a cookie with the `__Host-` prefix: nobody signs another in as themselves. */
const nameAt = (place: ConsolePlace) =>
  ownName(isLoopbackName(place.host) ? 'parley-console-sign-in' : '__Host-parley-console-sign-in', place);

/**
 * The cookie of a sign-in that has begun. The issuer's redirect comes from another site, so it is `Lax`; it opens nothing by
 * itself.
 */
function formatPendingCookie(value: string, seconds: number, place: ConsolePlace): string {
  // The prefix demands `Secure` and `/`.
  const [path, secure] = isLoopbackName(place.host) ? [pathOfSignIn(place), ''] : ['/', '; Secure'];
  return `${nameAt(place)}=${value}; Path=${path}; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure}`;
}

/** Refusals that any website can cause with a link: they must not end a sign-in that has begun. */
const KEEPS_PENDING: ReadonlySet<SignInRefusal> = new Set(['mismatch', 'too_many', 'wrong_host']);

/** The answer of the issuer, as the browser brought it. */
export interface OidcAnswer {
  readonly code?: unknown;
  readonly state?: unknown;
  readonly iss?: unknown;
  readonly error?: unknown;
}

const MAX_TEXT = 4_096;
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TEXT ? value : undefined;

async function isWithinLimit(spend: () => Promise<void>): Promise<boolean> {
  try {
    await spend();
    return true;
  } catch (error) {
    if (error instanceof NotServed && error.status === 429) return false;
    throw error;
  }
}

/** The ways to sign in. */
export interface SignInMethods {
  readonly key: true;
  /** Null: no issuer is configured. `begin` is the path that leads to it. */
  readonly oidc: { readonly issuer: string; readonly name: string; readonly begin: string } | null;
}

/** Signs operators in with the authorization code flow. All that it keeps meanwhile is in a sealed cookie. */
@Injectable()
export class OidcSignIn {
  private readonly log = new Logger('Console');
  private readonly sealed: SealedText;
  private readonly oneTime: Pick<SharedState['oneTime'], 'claim'>;
  private readonly now: () => number;

  constructor(
    @Inject(OIDC_SETTING) private readonly setting: OidcSetting | null,
    @Inject(StateKeys) keys: StateKeys,
    @Inject(SharedState) { clock, oneTime }: Pick<SharedState, 'clock' | 'oneTime'>,
    @Inject(OperatorSessions) private readonly sessions: OperatorSessions,
    @Inject(OperatorGate) private readonly gate: OperatorGate,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
    @Inject(Authenticator) private readonly authenticator: Authenticator,
  ) {
    this.sealed = new SealedText(keys, 'parley operator sign-in');
    this.oneTime = oneTime;
    this.now = clock;
  }

  /** The ways to sign in, for the page. */
  methods(request: IncomingMessage): SignInMethods {
    const { setting } = this;
    if (!setting) return { key: true, oidc: null };
    const { issuer } = setting;
    return {
      key: true,
      oidc: { issuer, name: new URL(issuer).host, begin: pathOfSignIn(readPlace(request)) },
    };
  }

  /**
   * Leads the browser to the issuer.
   * @param spend counts an attempt. @throws NotServed where no issuer is configured
   */
  async begin(request: IncomingMessage, spend: () => Promise<void>): Promise<Redirect> {
    const setting = this.requireSetting();
    const place = readPlace(request);
    const { host = '' } = place;
    if (!(await isWithinLimit(spend))) return this.redirectRefused('too_many', place);
    if (host.toLowerCase() !== setting.host) return this.redirectRefused('wrong_host', place);
    try {
      const { url, pending } = await setting.client.begin();
      const until = this.now() + MAX_SIGN_IN_TIME;
      const text = await this.sealed.seal(
        JSON.stringify({ ...pending, until } satisfies SealedSignIn),
        toSealContext(place),
      );
      return { location: url, cookies: [formatPendingCookie(text, MAX_SIGN_IN_TIME / 1000, place)] };
    } catch (error) {
      return this.redirectFailed(error, request, place);
    }
  }

  /**
   * Answers the redirect of the issuer.
   * @param spend counts an attempt, once the browser has proved that it began one: any website can call this address, and
   * must not spend what operators may. @throws NotServed where no issuer is configured, SharedStateUnavailable
   */
  async finish(request: IncomingMessage, answer: OidcAnswer, spend: () => Promise<void>): Promise<Redirect> {
    const { client, longest, host: ownHost } = this.requireSetting();
    const place = readPlace(request);
    const { host = '' } = place;
    if (host.toLowerCase() !== ownHost) return this.redirectRefused('wrong_host', place);
    const cookie = readCookie(place, nameAt(place));
    const text = cookie === undefined ? undefined : await this.sealed.open(cookie, toSealContext(place));
    if (text === undefined) return this.redirectRefused('mismatch', place);
    const pending = JSON.parse(text) as SealedSignIn;
    if (!isSameText(answer.state, pending.state)) return this.redirectRefused('mismatch', place);
    if (!(await isWithinLimit(spend))) return this.redirectRefused('too_many', place);
    if (pending.until <= this.now()) return this.redirectRefused('expired', place);
    try {
      if (!(await client.isFromIssuer(textOf(answer.iss)))) return this.redirectRefused('mismatch', place);
      const code = textOf(answer.code);
      if (answer.error !== undefined || code === undefined) return this.redirectRefused('denied', place);
      const person = await client.person(code, pending);
      const agent = await this.gate.proven(person);
      const session = this.sessions.beginProven(person, longest);
      const own = await this.sessions.createCookie(session, place);
      if (own === null) throw new InvalidToken('claims that are too long for a session');
      // In the share of an operator: nobody else can fill the store.
      if (
        !(await this.oneTime.claim(`console sign-in ${pending.state}`, 2 * MAX_SIGN_IN_TIME, agent.principal))
      )
        return this.redirectRefused('expired', place);
      const network = remoteNetwork(request.socket.remoteAddress);
      this.notes.write({ agent }, 'console.sign_in', network);
      return { location: pathOfConsole(place), cookies: [formatPendingCookie('', 0, place), own] };
    } catch (error) {
      return this.redirectFailed(error, request, place);
    }
  }

  /** Where the issuer ends its own session; null where it did not sign the person in. */
  async endOfSession(request: IncomingMessage): Promise<string | null> {
    if (!this.setting) return null;
    const session = await this.sessions.of(request);
    return typeof session === 'object' && session.person ? this.setting.client.endOfSession() : null;
  }

  /** @throws NotServed */
  private requireSetting(): OidcSetting {
    if (!this.setting) throw notServed(404);
    return this.setting;
  }

  private redirectRefused(why: SignInRefusal, place: ConsolePlace): Redirect {
    const cookies = KEEPS_PENDING.has(why) ? [] : [formatPendingCookie('', 0, place)];
    return { location: `${pathOfConsole(place)}?sign_in=${why}`, cookies };
  }

  /** @throws errors of other kinds */
  private redirectFailed(error: unknown, request: IncomingMessage, place: ConsolePlace): Redirect {
    const network = remoteNetwork(request.socket.remoteAddress);
    if (error instanceof AuthenticationUnavailable) {
      this.log.warn(`a sign-in from ${network} failed: ${error.cause}`);
      return this.redirectRefused('unavailable', place);
    }
    const cause =
      error instanceof InvalidToken
        ? error.cause
        : error instanceof NotServed && error.status === 403
          ? 'no rule of console.oidc.operators makes this person an operator'
          : null;
    if (cause === null) throw error;
    this.log.warn(`a sign-in from ${network} was refused: ${cause}`);
    if (this.authenticator instanceof RecordedAuthenticator)
      this.authenticator.recordRefused(
        { headers: readTrustedHeaders(request), remoteAddress: request.socket.remoteAddress },
        { cause: `console sign-in: ${cause}` },
      );
    return this.redirectRefused(error instanceof InvalidToken ? 'invalid' : 'no_operator', place);
  }
}
