import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type Agent, type RateLimiter, Unauthorized } from '#core';
import type { AuditSink } from '#audit';
import type { Authenticator, CredentialSource } from '#auth';
import { NotServed, trustedHeaders } from '#streaming';
import {
  type CredentialHeaders,
  type OperatorSession,
  type OperatorSessions,
  presentedCookie,
  setCookie,
} from './operator-sessions.js';

interface OperatorGateDependencies {
  readonly authenticator: Authenticator;
  readonly sessions: OperatorSessions;
  /** Names of the agents that are operators in the current configuration. */
  readonly operators: () => readonly string[];
  /** Rate limit per operator. */
  readonly limiter: RateLimiter;
  /**
   * Called with a cookie that this service did not seal: a wrong credential, unlike an expired one. Default: not
   * called.
   */
  readonly forged?: (from: Pick<CredentialSource, 'headers' | 'remoteAddress'>) => void;
}

/** An authenticated operator. */
export interface Operator {
  readonly agent: Agent;
  /** Absent when the request itself shows a credential. */
  readonly session?: OperatorSession;
  /** Authenticates again with the same credential. @throws NotServed when it is no longer valid */
  readonly confirm: () => Promise<void>;
}

/** Headers of programs, which show a credential with every request. They take precedence over the cookie. */
const CREDENTIALS = ['authorization', 'x-mcp-api-key', 'x-parse-session-token'];

/**
 * Authenticates operators: callers that the authenticator recognises and that are configured as operators.
 */
export class OperatorGate {
  constructor(private readonly dependencies: OperatorGateDependencies) {}

  /** @throws NotServed */
  async admit(request: IncomingMessage): Promise<Operator> {
    const headers = trustedHeaders(request);
    const shown = CREDENTIALS.some((name) => headers[name] !== undefined);
    const cookie = shown ? undefined : presentedCookie(headers);
    const operator =
      cookie === undefined
        ? await this.asked(request, () => Promise.resolve(headers))
        : await this.bySession(request, headers, cookie);
    await this.spend(operator.agent);
    return operator;
  }

  /** @throws NotServed */
  async identify(request: IncomingMessage, credential: IncomingHttpHeaders): Promise<Agent> {
    const agent = await this.authenticated(request, credential);
    // Sub-agents cannot sign in.
    if (agent.depth !== 0 || !this.dependencies.operators().includes(agent.shape.name))
      throw new NotServed(403, 'this agent is no operator');
    return agent;
  }

  private async bySession(
    request: IncomingMessage,
    headers: IncomingHttpHeaders,
    cookie: string,
  ): Promise<Operator> {
    const { sessions } = this.dependencies;
    const session = await sessions.open(cookie, headers.host ?? '');
    if (session === 'forged')
      this.dependencies.forged?.({ headers, remoteAddress: request.socket.remoteAddress });
    if (session === 'forged' || session === 'over') throw signInAgain(headers);
    const operator = await this.asked(request, async () => {
      if (await sessions.isOver(session)) throw signInAgain(headers);
      return session.credential;
    }).catch((error: unknown) => {
      throw error instanceof NotServed && error.status === 401 ? signInAgain(headers) : error;
    });
    return { ...operator, session };
  }

  private async asked(
    request: IncomingMessage,
    credential: () => Promise<IncomingHttpHeaders | CredentialHeaders>,
  ): Promise<Operator> {
    const agent = await this.identify(request, await credential());
    const confirm = async () => {
      const again = await this.identify(request, await credential());
      if (again.principal !== agent.principal) throw new NotServed(401, 'Unauthorized');
    };
    return { agent, confirm };
  }

  private async authenticated(request: IncomingMessage, headers: IncomingHttpHeaders): Promise<Agent> {
    const { remoteAddress } = request.socket;
    try {
      return await this.dependencies.authenticator.authenticate({ headers, remoteAddress, method: 'GET' });
    } catch (error) {
      if (error instanceof Unauthorized) throw new NotServed(401, 'Unauthorized');
      throw error;
    }
  }

  private async spend({ principal }: Agent): Promise<void> {
    const spent = await this.dependencies.limiter.check(principal);
    if (!spent) return;
    const retry = String(Math.max(1, Math.ceil(spent.retryAfter)));
    throw new NotServed(429, 'Too Many Requests', { 'Retry-After': retry });
  }
}

/** Refuses the request and deletes the invalid cookie. */
function signInAgain(headers: IncomingHttpHeaders): NotServed {
  return new NotServed(401, 'sign in again', { 'Set-Cookie': setCookie('', 0, headers) });
}

/** Records the actions of operators in the audit log. */
export class OperatorNotes {
  constructor(
    private readonly audit: Pick<AuditSink, 'recordEvent'>,
    private readonly log: { error(line: string): void },
  ) {}

  /** A failure to record does not undo the action. */
  write({ agent }: Pick<Operator, 'agent'>, action: string, target?: string): void {
    try {
      this.audit.recordEvent({
        type: 'operator_action',
        at: new Date().toISOString(),
        success: true,
        action,
        ...(target !== undefined && { target: target.slice(0, 200) }),
        principal: agent.principal,
        agent_name: agent.shape.name,
        ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
      });
    } catch (error) {
      this.log.error(`an operator's action was not recorded: ${String(error)}`);
    }
  }
}
