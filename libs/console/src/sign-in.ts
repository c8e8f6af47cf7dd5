import type { IncomingMessage } from 'node:http';
import type { Agent, RateLimiter } from '#core';
import { NotServed, remoteNetwork, trustedHeaders } from '#streaming';
import type { Operator, OperatorGate, OperatorNotes } from './operator-gate.js';
import {
  type CredentialHeaders,
  fitsCookie,
  type OperatorSession,
  type OperatorSessions,
  presentedCookie,
  setCookie,
} from './operator-sessions.js';
import type { SignInBody } from './sign-in-body.js';

export interface SignInDependencies {
  readonly gate: OperatorGate;
  readonly sessions: OperatorSessions;
  /** Limits all attempts of one remote network, successful or not. */
  readonly limiter: RateLimiter;
  /** Names of the agents that may decide approvals. */
  readonly approvers: readonly string[];
  readonly notes: OperatorNotes;
  readonly log: { warn(line: string): void };
}

/** The signed-in operator, and the cookie with the session. */
interface SignedIn {
  readonly operator: object;
  /** Absent when the request itself shows a credential. */
  readonly cookie?: string;
}

/** Signs browsers in: a browser sends its credential once and then carries a sealed session. */
export class SignIn {
  constructor(private readonly dependencies: SignInDependencies) {}

  /** Counts an attempt to sign in. @throws NotServed */
  async spend({ socket }: IncomingMessage): Promise<void> {
    const spent = await this.dependencies.limiter.check(remoteNetwork(socket.remoteAddress));
    if (!spent) return;
    const retry = String(Math.max(1, Math.ceil(spent.retryAfter)));
    throw new NotServed(429, 'too many attempts to sign in', { 'Retry-After': retry });
  }

  /** @throws NotServed, SharedStateUnavailable */
  async begin(request: IncomingMessage, body: SignInBody): Promise<SignedIn> {
    const { gate, sessions, notes, log } = this.dependencies;
    const network = remoteNetwork(request.socket.remoteAddress);
    const credential = credentialOf(body);
    const agent = await gate.identify(request, credential).catch((error: unknown) => {
      if (error instanceof NotServed) log.warn(`a sign-in from ${network} was refused (${error.status})`);
      throw error;
    });
    const signedIn = await this.carried(request, agent, sessions.begin(credential, agent.principal));
    notes.write({ agent }, 'console.sign_in', network);
    return signedIn;
  }

  /** Extends the session of an open page. */
  async renew(request: IncomingMessage, { agent, session }: Operator): Promise<SignedIn> {
    if (!session) return { operator: this.shown(agent) };
    return this.carried(request, agent, this.dependencies.sessions.renewed(session));
  }

  /** Signing out without a session is no error. @throws SharedStateUnavailable when copies of the session stay valid */
  async end(request: IncomingMessage): Promise<void> {
    const { sessions } = this.dependencies;
    const headers = trustedHeaders(request);
    const cookie = presentedCookie(headers);
    const session = cookie === undefined ? 'over' : await sessions.open(cookie, headers.host ?? '');
    if (typeof session !== 'string') await sessions.end(session);
  }

  private async carried(request: IncomingMessage, agent: Agent, session: OperatorSession): Promise<SignedIn> {
    const headers = trustedHeaders(request);
    const sealed = await this.dependencies.sessions.seal(session, headers.host ?? '');
    if (!fitsCookie(sealed))
      throw new NotServed(400, 'this credential is too long for a browser session: send it as a header');
    const left = this.dependencies.sessions.secondsLeft(session);
    return { operator: this.shown(agent), cookie: setCookie(sealed, left, headers) };
  }

  private shown({ shape, principal, tenantId }: Agent): object {
    return {
      signed_in: true,
      agent: shape.name,
      principal,
      tenant_id: tenantId,
      approver: this.dependencies.approvers.includes(shape.name),
    };
  }
}

/** @throws NotServed */
function credentialOf({ key, session }: SignInBody): CredentialHeaders {
  const headers = {
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(session !== undefined && { 'x-parse-session-token': session }),
  };
  if (Object.keys(headers).length === 0) throw new NotServed(400, 'a key or a session is needed');
  return headers;
}
