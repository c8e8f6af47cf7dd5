import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { CLOCK_DIFFERENCE, steadyClock, type VersionedStore } from '#cluster';
import type { SealedText } from '#dispatcher';
import { isLoopbackName } from './same-site.js';

/** With the prefix a browser takes it over TLS alone. */
function nameFor(host: string | undefined): string {
  return isLoopbackName(host) ? 'parley-console' : '__Secure-parley-console';
}

/** Characters: with name and attributes, what every browser keeps. */
const MAX_VALUE = 3_800;

/** Whether a cookie can hold it. */
export const fitsCookie = (value: string): boolean => value.length <= MAX_VALUE;

/** The session that a browser carries; `undefined` also when it carries two, because which is ours cannot be told. */
export function presentedCookie({ cookie, host }: IncomingHttpHeaders): string | undefined {
  const prefix = `${nameFor(host)}=`;
  const found = (cookie ?? '').split(';').flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(prefix) ? [text.slice(prefix.length)] : [];
  });
  return found.length === 1 && found[0] !== '' ? found[0] : undefined;
}

/** @param seconds that the browser keeps it; 0 makes it forget */
export function setCookie(value: string, seconds: number, { host }: IncomingHttpHeaders): string {
  const secure = isLoopbackName(host) ? '' : '; Secure';
  return `${nameFor(host)}=${value}; Path=/console; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`;
}

/** Credential headers, as a program would send them. */
export type CredentialHeaders = Readonly<Record<string, string>>;

/** What a signed-in browser carries, sealed. */
export interface OperatorSession {
  readonly id: string;
  /** Shown to the authenticator at every request: who lost the right to sign in has lost the session. */
  readonly credential: CredentialHeaders;
  /** Milliseconds since 1970. */
  readonly signedInAt: number;
  readonly expiresAt: number;
}

/** Milliseconds that a session lasts while nobody is at the page. */
export const IDLE = 30 * 60_000;
/** Milliseconds after which one signs in again in any case. */
export const LONGEST = 8 * 3_600_000;

interface OperatorSessionsOptions {
  readonly sealed: SealedText;
  /** Sessions that were signed out: no replica honours them again. */
  readonly ended: Pick<VersionedStore, 'create' | 'find'>;
  /** Milliseconds since 1970. Default: that of the process, which is never set back. */
  readonly now?: () => number;
}

/** Sessions that live in the browser, sealed so that any replica opens them. */
export class OperatorSessions {
  private readonly now: () => number;

  constructor(private readonly parts: OperatorSessionsOptions) {
    this.now = parts.now ?? steadyClock;
  }

  begin(credential: CredentialHeaders): OperatorSession {
    const now = this.now();
    return { id: randomUUID(), credential, signedInAt: now, expiresAt: now + IDLE };
  }

  /** Somebody is still at the page. */
  renewed(session: OperatorSession): OperatorSession {
    return { ...session, expiresAt: Math.min(this.now() + IDLE, session.signedInAt + LONGEST) };
  }

  secondsLeft({ expiresAt }: Pick<OperatorSession, 'expiresAt'>): number {
    return Math.max(0, Math.floor((expiresAt - this.now()) / 1000));
  }

  /** @param host under which the browser knows the service: a session counts nowhere else */
  seal(session: OperatorSession, host: string): Promise<string> {
    return this.parts.sealed.seal(JSON.stringify(session), host);
  }

  /**
   * @returns `over` for a session of this host that has ended, `forged` for what never was one
   * @throws SharedStateUnavailable
   */
  async open(text: string, host: string): Promise<OperatorSession | 'over' | 'forged'> {
    const plain = await this.parts.sealed.open(text, host);
    if (plain === undefined) return 'forged';
    const session = JSON.parse(plain) as OperatorSession;
    return (await this.isOver(session)) ? 'over' : session;
  }

  /** @throws SharedStateUnavailable: whether it was signed out is not known then */
  async isOver({ id, expiresAt }: OperatorSession): Promise<boolean> {
    return expiresAt <= this.now() || (await this.parts.ended.find(id)) !== undefined;
  }

  /** @throws SharedStateUnavailable */
  async end({ id, signedInAt }: OperatorSession): Promise<void> {
    // An older copy of the cookie may have been renewed: as long as any of them could be.
    const left = signedInAt + LONGEST - this.now();
    // By the clock of another replica it may go on a while longer.
    if (left + 2 * CLOCK_DIFFERENCE > 0) await this.parts.ended.create(id, {}, left + 2 * CLOCK_DIFFERENCE);
  }
}
