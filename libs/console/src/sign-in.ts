import { Inject, Injectable, Logger } from '@nestjs/common';
import type { IncomingMessage } from 'node:http';
import { Matches, ValidateIf } from 'class-validator';
import type { Agent, RateLimiter } from '#core';
import { SharedState } from '#state';
import { NotServed, remoteNetwork } from '#streaming';
import {
  type Operator,
  OPERATOR_RIGHTS,
  OperatorGate,
  OperatorNotes,
  type OperatorRights,
  spend,
} from './operator-gate.js';
import {
  type CredentialHeaders,
  type OperatorSession,
  OperatorSessions,
  readPlace,
} from './operator-sessions.js';

/** Limit of sign-in attempts per remote network and minute, successful or not, over all replicas. */
const SIGN_INS = { limit: 20, window: 60 };

/** An operator as its page sees it. */
export interface ShownOperator {
  readonly signed_in: true;
  readonly agent: string;
  readonly principal: string;
  readonly tenant_id: string | number | null;
  /** Whether it may decide approvals. */
  readonly approver: boolean;
  readonly signed_in_by: 'key' | 'oidc';
  /** As the issuer names the person; null where it does not. */
  readonly name?: string | null;
}

/** The signed-in operator, and the cookie with the session. */
interface SignedIn {
  readonly operator: ShownOperator;
  /** Absent when the request itself shows a credential. */
  readonly cookie?: string;
}

/** Signs browsers in: a browser sends its credential once and then carries a sealed session. */
@Injectable()
export class SignIn {
  private readonly log = new Logger('Console');
  private readonly limiter: RateLimiter;

  constructor(
    @Inject(OperatorGate) private readonly gate: OperatorGate,
    @Inject(OperatorSessions) private readonly sessions: OperatorSessions,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
    @Inject(OPERATOR_RIGHTS) private readonly rights: Pick<OperatorRights, 'approvers'>,
    @Inject(SharedState) { limiters }: Pick<SharedState, 'limiters'>,
  ) {
    this.limiter = limiters.limiter('console sign-in', SIGN_INS);
  }

  /** Counts an attempt to sign in. @throws NotServed */
  async spend({ socket }: IncomingMessage): Promise<void> {
    await spend(this.limiter, remoteNetwork(socket.remoteAddress), 'too many attempts to sign in');
  }

  /** @throws NotServed, SharedStateUnavailable */
  async begin(request: IncomingMessage, body: SignInBody): Promise<SignedIn> {
    const { gate, sessions, notes, log } = this;
    const network = remoteNetwork(request.socket.remoteAddress);
    const credential = toCredentialHeaders(body);
    const agent = await gate.identify(request, credential).catch((error: unknown) => {
      if (error instanceof NotServed) log.warn(`a sign-in from ${network} was refused (${error.status})`);
      throw error;
    });
    const signedIn = await this.carrySession(request, agent, sessions.begin(credential, agent.principal));
    notes.write({ agent }, 'console.sign_in', network);
    return signedIn;
  }

  /** Extends the session of an open page. */
  async renew(request: IncomingMessage, { agent, session }: Operator): Promise<SignedIn> {
    if (!session) return { operator: this.showOperator(agent, undefined) };
    return this.carrySession(request, agent, this.sessions.renewSession(session));
  }

  /** Signing out without a session is no error. @throws SharedStateUnavailable when copies of the session stay valid */
  async end(request: IncomingMessage): Promise<void> {
    const session = await this.sessions.of(request);
    if (typeof session === 'object') await this.sessions.end(session);
  }

  private async carrySession(
    request: IncomingMessage,
    agent: Agent,
    session: OperatorSession,
  ): Promise<SignedIn> {
    const cookie = await this.sessions.createCookie(session, readPlace(request));
    if (cookie === null)
      throw new NotServed(400, 'this credential is too long for a browser session: send it as a header');
    return { operator: this.showOperator(agent, session), cookie };
  }

  private showOperator(
    { definition, principal, tenantId }: Agent,
    session: OperatorSession | undefined,
  ): ShownOperator {
    return {
      signed_in: true,
      agent: definition.name,
      principal,
      tenant_id: tenantId,
      approver: this.rights.approvers.includes(definition.name),
      signed_in_by: session?.person ? 'oidc' : 'key',
      ...(session?.person && { name: session.person.name }),
    };
  }
}

/** @throws NotServed */
function toCredentialHeaders({ key, session }: SignInBody): CredentialHeaders {
  const headers = {
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(session !== undefined && { 'x-parse-session-token': session }),
  };
  if (Object.keys(headers).length === 0) throw new NotServed(400, 'a key or a session is needed');
  return headers;
}

/** Characters and length that a header may have. */
const CREDENTIAL = /^[\x21-\x7e]{1,4096}$/;
/** The message does not repeat the credential. */
const NO_CREDENTIAL = { message: 'this cannot be a credential' };

/** The body of a sign-in: a key or token, a Parse session, or both. */
export class SignInBody {
  @ValidateIf(({ key }: SignInBody) => key !== undefined)
  @Matches(CREDENTIAL, NO_CREDENTIAL)
  key?: string;

  @ValidateIf(({ session }: SignInBody) => session !== undefined)
  @Matches(CREDENTIAL, NO_CREDENTIAL)
  session?: string;
}
