import { Inject, Injectable } from '@nestjs/common';
import { createHash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import {
  AuthenticationUnavailable,
  DEFAULT_ISSUER,
  InvalidToken,
  type ProvenPerson,
  RevocationList,
  toSubject,
} from '#auth';
import { SealedText, StateKeys } from '#dispatcher';
import { CLOCK_DIFFERENCE, SharedState, SharedStateUnavailable, type VersionedStore } from '#state';
import { readMountPath, readTrustedHeaders } from '#streaming';
import { VerifiedOperators } from './verified-operators.js';

/** Where a browser found the console. Its cookies are of this host and path. */
export interface ConsolePlace {
  readonly host?: string | undefined;
  /** The path of an application at which it is mounted. Default: none, as in the service. */
  readonly base?: string;
}

/** The place that a request names, with its cookies. */
export function readPlace(request: IncomingMessage): ConsolePlace & Pick<IncomingHttpHeaders, 'cookie'> {
  const { host, cookie } = readTrustedHeaders(request);
  return { host, cookie, base: readMountPath(request) };
}

export const pathOfConsole = ({ base = '' }: ConsolePlace): string => `${base}/console`;

/** What cookies are sealed for: another host, and another console of the same application, cannot open them. */
export const toSealContext = ({ host = '', base = '' }: ConsolePlace): string => `${host}${base}`;

/** Consoles of one application have cookies of their own, also where a browser sends those of both. */
export function ownName(name: string, { base = '' }: ConsolePlace): string {
  return base === '' ? name : `${name}-${createHash('sha256').update(base).digest('hex').slice(0, 8)}`;
}

/** Browsers accept a cookie with the `__Secure-` prefix over TLS only. */
function nameAt(place: ConsolePlace): string {
  return ownName(isLoopbackName(place.host) ? 'parley-console' : '__Secure-parley-console', place);
}

/** Characters. With name and attributes, every browser stores that many. */
const MAX_VALUE = 3_800;

/** Whether the value fits into a cookie. */
export const fitsCookie = (value: string): boolean => value.length <= MAX_VALUE;

/**
 * The session cookie of a request, or another one; `undefined` also when there are two, because nothing shows which is the genuine one.
 */
export function readCookie(
  { cookie, ...place }: ConsolePlace & Pick<IncomingHttpHeaders, 'cookie'>,
  name = nameAt(place),
): string | undefined {
  const prefix = `${name}=`;
  const found = (cookie ?? '').split(';').flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(prefix) ? [text.slice(prefix.length)] : [];
  });
  return found.length === 1 && found[0] !== '' ? found[0] : undefined;
}

/** @param seconds lifetime in the browser; 0 deletes the cookie */
export function setCookie(value: string, seconds: number, place: ConsolePlace): string {
  const secure = isLoopbackName(place.host) ? '' : '; Secure';
  return `${nameAt(place)}=${value}; Path=${pathOfConsole(place)}; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`;
}

/** Credential headers in the form of a program's request. */
export type CredentialHeaders = Readonly<Record<string, string>>;

/** The sealed content of the session cookie. */
export interface OperatorSession {
  readonly id: string;
  /** Authenticated at every request: an operator that loses its rights loses its session. */
  readonly credential: CredentialHeaders;
  /** The person that the issuer named, in place of a credential. Compared with the rules at every request. */
  readonly person?: ProvenPerson;
  /** Milliseconds after which it ends, also in use. Default `MAX_SESSION_TIME`. */
  readonly longest?: number;
  /** The principal that the authenticator named at sign-in. */
  readonly principal: string;
  /** Milliseconds since 1970. */
  readonly signedInAt: number;
  readonly expiresAt: number;
}

/** Milliseconds after which an unused session ends. */
export const MAX_IDLE_TIME = 30 * 60_000;
/** Milliseconds after which every session ends. */
export const MAX_SESSION_TIME = 8 * 3_600_000;

/** Stateless sessions: the browser keeps them sealed, and any replica can open them. */
@Injectable()
export class OperatorSessions {
  private readonly sealed: SealedText;
  /** Ids of sessions that were signed out, shared by all replicas. */
  private readonly ended: Pick<VersionedStore, 'create' | 'find'>;
  private readonly now: () => number;
  /** What `parley revoke` took back. */
  private readonly revoked: Pick<VersionedStore, 'find'>;
  /** Whose sessions they are, while it cannot be looked up whether they were ended. */
  readonly verified: VerifiedOperators;

  constructor(
    @Inject(StateKeys) keys: StateKeys,
    @Inject(SharedState)
    {
      bus,
      clock,
      endedSessions,
      revocations,
    }: Pick<SharedState, 'bus' | 'clock' | 'endedSessions' | 'revocations'>,
  ) {
    this.now = clock;
    this.sealed = new SealedText(keys, 'parley operator session');
    this.ended = endedSessions;
    this.revoked = revocations;
    this.verified = new VerifiedOperators(bus);
  }

  begin(credential: CredentialHeaders, principal: string): OperatorSession {
    const now = this.now();
    return { id: randomUUID(), credential, principal, signedInAt: now, expiresAt: now + MAX_IDLE_TIME };
  }

  /** A session of a person whom the issuer named. @param longest milliseconds after which the issuer is asked again */
  beginProven(person: ProvenPerson, longest: number): OperatorSession {
    const session = { ...this.begin({}, person.principal), person, longest };
    return { ...session, expiresAt: Math.min(session.expiresAt, session.signedInAt + longest) };
  }

  /** Extends a session that is in use. */
  renewSession(session: OperatorSession): OperatorSession {
    const longest = Math.min(session.longest ?? MAX_SESSION_TIME, MAX_SESSION_TIME);
    return { ...session, expiresAt: Math.min(this.now() + MAX_IDLE_TIME, session.signedInAt + longest) };
  }

  secondsLeft({ expiresAt }: Pick<OperatorSession, 'expiresAt'>): number {
    return Math.max(0, Math.floor((expiresAt - this.now()) / 1000));
  }

  /** @param place the session is valid there only: `toSealContext` */
  seal(session: OperatorSession, place: string): Promise<string> {
    return this.sealed.seal(JSON.stringify(session), place);
  }

  /**
   * Whether it was ended meanwhile is another question: `isOver`.
   * @returns `over` for an expired session of this place, `forged` for anything that was not sealed here
   * @throws SharedStateUnavailable where the key is not known here yet
   */
  async open(text: string, place: string): Promise<OperatorSession | 'over' | 'forged'> {
    const plain = await this.sealed.open(text, place);
    if (plain === undefined) return 'forged';
    const session = JSON.parse(plain) as OperatorSession;
    return this.isExpired(session) ? 'over' : session;
  }

  isExpired({ expiresAt }: OperatorSession): boolean {
    return expiresAt <= this.now();
  }

  /** The session of a request, as `open` answers it; `undefined`: its browser has none. @throws SharedStateUnavailable */
  async of(request: IncomingMessage): Promise<OperatorSession | 'over' | 'forged' | undefined> {
    const place = readPlace(request);
    const cookie = readCookie(place);
    return cookie === undefined ? undefined : this.open(cookie, toSealContext(place));
  }

  /** The cookie of a session; null: what it contains is too long for one. */
  async createCookie(session: OperatorSession, place: ConsolePlace): Promise<string | null> {
    const value = await this.seal(session, toSealContext(place));
    return fitsCookie(value) ? setCookie(value, this.secondsLeft(session), place) : null;
  }

  /** @throws SharedStateUnavailable, because neither a sign-out nor a revocation can be looked up */
  async isOver(session: OperatorSession): Promise<boolean> {
    if (this.isExpired(session)) return true;
    return (await this.ended.find(session.id)) !== undefined || this.isRevoked(session);
  }

  /** Whether the sign-ins of the person, or of the console at the issuer, were taken back: as their tokens are. */
  private async isRevoked({ person, signedInAt }: OperatorSession): Promise<boolean> {
    if (!person) return false;
    const { issuer, clientId, principal } = person;
    const list = new RevocationList(issuer, this.revoked, DEFAULT_ISSUER.clockSkew);
    const claims = { sub: toSubject(issuer, principal), client_id: clientId, iat: signedInAt / 1000 };
    try {
      await list.assertHolds('', claims);
      return false;
    } catch (error) {
      if (error instanceof InvalidToken) return true;
      throw error instanceof AuthenticationUnavailable ? new SharedStateUnavailable(error) : error;
    }
  }

  /** @throws SharedStateUnavailable also when the principal has ended too many sessions */
  async end({ id, principal, signedInAt }: OperatorSession): Promise<void> {
    this.verified.forget(id);
    // An older copy of the cookie may have been renewed: the id is kept as long as any copy could be valid.
    const left = signedInAt + MAX_SESSION_TIME - this.now();
    // Another replica may not have measured the common clock yet.
    const ttl = left + 2 * CLOCK_DIFFERENCE;
    if (ttl > 0) await this.ended.create(id, {}, ttl, principal);
  }
}

/** Required on every request that changes something: forms and links of other pages cannot send it. */
const CONSOLE_HEADER = 'x-parley-console';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
const CHANGES_NOTHING = new Set(['GET', 'HEAD']);

/**
 * Whether a browser sent the request for another site's page. Programs send none of these headers.
 * @returns why it is refused, or null
 */
export function crossSiteRefusal(headers: IncomingHttpHeaders, verb: string): string | null {
  const { origin, host = '' } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return 'only the console itself may ask this';
  if (origin !== undefined && !isOwnOrigin(origin, host)) return 'only the console itself may ask this';
  if (!CHANGES_NOTHING.has(verb) && headers[CONSOLE_HEADER] !== '1')
    return `a change needs the header ${CONSOLE_HEADER}: 1`;
  return null;
}

/** A proxy may change the scheme, but not the host name. */
function isOwnOrigin(origin: string, host: string): boolean {
  return URL.canParse(origin) && host !== '' && new URL(origin).host === host.trim().toLowerCase();
}

/** Whether the host name always refers to this machine. */
export function isLoopbackName(host: string | undefined): boolean {
  return URL.canParse(`http://${host ?? ''}`) && LOOPBACK.has(new URL(`http://${host}`).hostname);
}
