import type { IncomingMessage } from 'node:http';
import type { Agent, RateLimiter } from '#agent';
import { NotServed, readSmallJson, remoteNetwork, trustedHeaders } from '#streaming';
import type { Operator, OperatorGate, OperatorNotes } from './operator-gate.js';
import {
  type CredentialHeaders,
  fitsCookie,
  type OperatorSession,
  type OperatorSessions,
  presentedCookie,
  setCookie,
} from './operator-sessions.js';
import type { Answer } from './route.js';

export interface SignInDependencies {
  readonly gate: OperatorGate;
  readonly sessions: OperatorSessions;
  /** Attempts from one remote network, whatever comes of them. */
  readonly limiter: RateLimiter;
  /** Names of the agents that decide approvals. */
  readonly approvers: readonly string[];
  readonly notes: OperatorNotes;
  readonly log: { warn(line: string): void };
}

/** What can stand in a header, and no longer than headers may be. */
const CREDENTIAL = /^[\x21-\x7e]{1,4096}$/;

/** Browsers show their credential once, and carry a sealed session from then on. */
export class SignIn {
  constructor(private readonly parts: SignInDependencies) {}

  /** @throws NotServed, UnusableBody, SharedStateUnavailable */
  async begin(request: IncomingMessage): Promise<Answer> {
    const { gate, sessions, notes, log } = this.parts;
    const network = remoteNetwork(request.socket.remoteAddress);
    await this.spend(network);
    const credential = credentialOf(await readSmallJson(request));
    const agent = await gate.identify(request, credential).catch((error: unknown) => {
      if (error instanceof NotServed) log.warn(`a sign-in from ${network} was refused (${error.status})`);
      throw error;
    });
    const carried = await this.carried(request, agent, sessions.begin(credential));
    notes.write({ agent }, 'console.sign_in', network);
    return carried;
  }

  /** Somebody is at the page: the session begins its time anew. */
  async renew(request: IncomingMessage, { agent, session }: Operator): Promise<Answer> {
    if (!session) return { body: this.sessionOf(agent) };
    return this.carried(request, agent, this.parts.sessions.renewed(session));
  }

  /** Whoever is not signed in is signed out already. */
  async end(request: IncomingMessage): Promise<Answer> {
    const { sessions } = this.parts;
    const headers = trustedHeaders(request);
    const cookie = presentedCookie(headers);
    const session = cookie === undefined ? 'over' : await sessions.open(cookie, headers.host ?? '');
    if (typeof session !== 'string') await sessions.end(session);
    return { body: { signed_in: false }, headers: { 'Set-Cookie': setCookie('', 0, headers) } };
  }

  private async carried(request: IncomingMessage, agent: Agent, session: OperatorSession): Promise<Answer> {
    const headers = trustedHeaders(request);
    const sealed = await this.parts.sessions.seal(session, headers.host ?? '');
    if (!fitsCookie(sealed))
      throw new NotServed(400, 'this credential is too long for a browser session: send it as a header');
    const left = this.parts.sessions.secondsLeft(session);
    return { body: this.sessionOf(agent), headers: { 'Set-Cookie': setCookie(sealed, left, headers) } };
  }

  private sessionOf({ shape, principal, tenantId }: Agent): object {
    return {
      signed_in: true,
      agent: shape.name,
      principal,
      tenant_id: tenantId,
      approver: this.parts.approvers.includes(shape.name),
    };
  }

  private async spend(network: string): Promise<void> {
    const spent = await this.parts.limiter.check(network);
    if (!spent) return;
    const retry = String(Math.max(1, Math.ceil(spent.retryAfter)));
    throw new NotServed(429, 'too many attempts to sign in', { 'Retry-After': retry });
  }
}

/** A key or token, a Parse session, or both where an agent asks for both. @throws NotServed */
function credentialOf({ key, session }: Readonly<Record<string, unknown>>): CredentialHeaders {
  const headers = {
    ...(key !== undefined && { authorization: `Bearer ${checked(key)}` }),
    ...(session !== undefined && { 'x-parse-session-token': checked(session) }),
  };
  if (Object.keys(headers).length === 0) throw new NotServed(400, 'a key or a session is needed');
  return headers;
}

function checked(text: unknown): string {
  if (typeof text === 'string' && CREDENTIAL.test(text)) return text;
  // What it was is not repeated.
  throw new NotServed(400, 'this cannot be a credential');
}
