import type { IncomingMessage } from 'node:http';
import type { Agent, RateLimiter } from '#core';
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
  /** Limits all attempts of one remote network, successful or not. */
  readonly limiter: RateLimiter;
  /** Names of the agents that may decide approvals. */
  readonly approvers: readonly string[];
  readonly notes: OperatorNotes;
  readonly log: { warn(line: string): void };
}

/** Characters and length that a header may have. */
const CREDENTIAL = /^[\x21-\x7e]{1,4096}$/;

/** Signs browsers in: a browser sends its credential once and then carries a sealed session. */
export class SignIn {
  constructor(private readonly dependencies: SignInDependencies) {}

  /** @throws NotServed, UnusableBody, SharedStateUnavailable */
  async begin(request: IncomingMessage): Promise<Answer> {
    const { gate, sessions, notes, log } = this.dependencies;
    const network = remoteNetwork(request.socket.remoteAddress);
    await this.spend(network);
    const credential = credentialOf(await readSmallJson(request));
    const agent = await gate.identify(request, credential).catch((error: unknown) => {
      if (error instanceof NotServed) log.warn(`a sign-in from ${network} was refused (${error.status})`);
      throw error;
    });
    const carried = await this.carried(request, agent, sessions.begin(credential, agent.principal));
    notes.write({ agent }, 'console.sign_in', network);
    return carried;
  }

  /** Extends the session of an open page. */
  async renew(request: IncomingMessage, { agent, session }: Operator): Promise<Answer> {
    if (!session) return { body: this.sessionOf(agent) };
    return this.carried(request, agent, this.dependencies.sessions.renewed(session));
  }

  /** Signing out without a session is no error. */
  async end(request: IncomingMessage): Promise<Answer> {
    const { sessions } = this.dependencies;
    const headers = trustedHeaders(request);
    const cookie = presentedCookie(headers);
    const session = cookie === undefined ? 'over' : await sessions.open(cookie, headers.host ?? '');
    if (typeof session !== 'string') await sessions.end(session);
    return { body: { signed_in: false }, headers: { 'Set-Cookie': setCookie('', 0, headers) } };
  }

  private async carried(request: IncomingMessage, agent: Agent, session: OperatorSession): Promise<Answer> {
    const headers = trustedHeaders(request);
    const sealed = await this.dependencies.sessions.seal(session, headers.host ?? '');
    if (!fitsCookie(sealed))
      throw new NotServed(400, 'this credential is too long for a browser session: send it as a header');
    const left = this.dependencies.sessions.secondsLeft(session);
    return { body: this.sessionOf(agent), headers: { 'Set-Cookie': setCookie(sealed, left, headers) } };
  }

  private sessionOf({ shape, principal, tenantId }: Agent): object {
    return {
      signed_in: true,
      agent: shape.name,
      principal,
      tenant_id: tenantId,
      approver: this.dependencies.approvers.includes(shape.name),
    };
  }

  private async spend(network: string): Promise<void> {
    const spent = await this.dependencies.limiter.check(network);
    if (!spent) return;
    const retry = String(Math.max(1, Math.ceil(spent.retryAfter)));
    throw new NotServed(429, 'too many attempts to sign in', { 'Retry-After': retry });
  }
}

/** The credential headers of the request body: a key or token, a Parse session, or both. @throws NotServed */
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
  // The message does not repeat the credential.
  throw new NotServed(400, 'this cannot be a credential');
}
