import { Inject, Injectable, Logger } from '@nestjs/common';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type Agent, type RateLimiter, Unauthorized } from '#core';
import { AuditSink } from '#audit';
import { Authenticator, type ProvenPerson, RecordedAuthenticator } from '#auth';
import { SharedState } from '#state';
import { NotServed, readTrustedHeaders } from '#streaming';
import {
  type ConsolePlace,
  type OperatorSession,
  OperatorSessions,
  readPlace,
  setCookie,
} from './operator-sessions.js';

/** Injection token of `OperatorRights`. */
export const OPERATOR_RIGHTS = Symbol('operator rights');

export interface OperatorRights {
  /** Names of the agents that are operators in the current configuration. */
  readonly operators: () => readonly string[];
  /** Names of the agents that may decide approvals. */
  readonly approvers: readonly string[];
  /** The agent that a person of the issuer is in the current configuration; null: none. Default: none. */
  readonly findAgent?: (person: ProvenPerson) => Agent | null;
}

/** Limit of requests per operator and minute, over all replicas. */
const REQUESTS = { limit: 600, window: 60 };

const FORGED_SESSION = { cause: 'a session of the console that was not made here' };

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
@Injectable()
export class OperatorGate {
  private readonly limiter: RateLimiter;

  constructor(
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(OperatorSessions) private readonly sessions: OperatorSessions,
    @Inject(OPERATOR_RIGHTS) private readonly rights: Pick<OperatorRights, 'operators' | 'findAgent'>,
    @Inject(SharedState) { limiters }: Pick<SharedState, 'limiters'>,
  ) {
    this.limiter = limiters.limiter('console', REQUESTS);
  }

  /** @throws NotServed */
  async admit(request: IncomingMessage): Promise<Operator> {
    const headers = readTrustedHeaders(request);
    const shown = CREDENTIALS.some((name) => headers[name] !== undefined);
    const session = shown ? undefined : await this.sessions.of(request);
    const operator =
      session === undefined
        ? await this.ask(() => this.identify(request, headers))
        : await this.bySession(request, headers, session);
    await spend(this.limiter, operator.agent.principal, 'Too Many Requests');
    return operator;
  }

  /** @throws NotServed */
  async identify(request: IncomingMessage, credential: IncomingHttpHeaders): Promise<Agent> {
    return this.operator(await this.authenticate(request, credential));
  }

  /** The operator that a person of the issuer is, by the rules of the current configuration. @throws NotServed */
  proven(person: ProvenPerson): Agent {
    const agent = this.rights.findAgent?.(person) ?? null;
    if (!agent) throw new NotServed(403, 'this person is no operator');
    return this.operator(agent);
  }

  /** Sub-agents cannot sign in. @throws NotServed */
  private operator(agent: Agent): Agent {
    if (agent.depth !== 0 || !this.rights.operators().includes(agent.definition.name))
      throw new NotServed(403, 'this agent is no operator');
    return agent;
  }

  private async bySession(
    request: IncomingMessage,
    headers: IncomingHttpHeaders,
    session: OperatorSession | 'over' | 'forged',
  ): Promise<Operator> {
    const { sessions } = this;
    const place = readPlace(request);
    // A cookie that this service did not seal is a wrong credential, unlike an expired one.
    if (session === 'forged' && this.authenticator instanceof RecordedAuthenticator)
      this.authenticator.recordRefused(
        { headers, remoteAddress: request.socket.remoteAddress },
        FORGED_SESSION,
      );
    if (session === 'forged' || session === 'over') throw signInAgain(place);
    const { person } = session;
    const operator = await this.ask(async () => {
      if (await sessions.isOver(session)) throw signInAgain(place);
      return person ? this.proven(person) : this.identify(request, session.credential);
    }).catch((error: unknown) => {
      throw error instanceof NotServed && error.status === 401 ? signInAgain(place) : error;
    });
    return { ...operator, session };
  }

  private async ask(identify: () => Promise<Agent>): Promise<Operator> {
    const agent = await identify();
    const confirm = async () => {
      const again = await identify();
      if (again.principal !== agent.principal) throw new NotServed(401, 'Unauthorized');
    };
    return { agent, confirm };
  }

  private async authenticate(request: IncomingMessage, headers: IncomingHttpHeaders): Promise<Agent> {
    const { remoteAddress } = request.socket;
    try {
      return await this.authenticator.authenticate({ headers, remoteAddress, method: 'GET' });
    } catch (error) {
      if (error instanceof Unauthorized) throw new NotServed(401, 'Unauthorized');
      throw error;
    }
  }
}

/** Counts a request of a caller. @throws NotServed when it has used up its limit */
export async function spend(limiter: RateLimiter, caller: string, refusal: string): Promise<void> {
  const spent = await limiter.check(caller);
  if (!spent) return;
  const retry = String(Math.max(1, Math.ceil(spent.retryAfter)));
  throw new NotServed(429, refusal, { 'Retry-After': retry });
}

/** Refuses the request and deletes the invalid cookie. */
function signInAgain(place: ConsolePlace): NotServed {
  return new NotServed(401, 'sign in again', { 'Set-Cookie': setCookie('', 0, place) });
}

/** Records the actions of operators in the audit log. */
@Injectable()
export class OperatorNotes {
  private readonly log = new Logger('Console');

  constructor(@Inject(AuditSink) private readonly audit: Pick<AuditSink, 'recordEvent'>) {}

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
        agent_name: agent.definition.name,
        ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
      });
    } catch (error) {
      this.log.error(`an operator's action was not recorded: ${String(error)}`);
    }
  }
}
