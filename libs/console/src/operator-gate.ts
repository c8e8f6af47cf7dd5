import { Inject, Injectable, Logger } from '@nestjs/common';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { cutText, type Agent, ProcessRateLimiters, type RateLimiter, Refused, Unauthorized } from '#core';
import { AuditSink } from '#audit';
import { AuthenticationUnavailable, Authenticator, type ProvenPerson, RecordedAuthenticator } from '#auth';
import { isOutcomeUnknown } from '#data';
import { SharedState, SharedStateUnavailable, SuspendedAgents } from '#state';
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
  /** Whether the agent was made by the current configuration. */
  readonly isCurrent: (agent: Agent) => boolean;
}

/** Limit of requests per operator and minute, over all replicas. */
const REQUESTS = { limit: 600, window: 60 };

const FORGED_SESSION = { cause: 'a session of the console that was not made here' };

/** An authenticated operator. */
export interface Operator {
  readonly agent: Agent;
  /** Absent when the request itself shows a credential. */
  readonly session?: OperatorSession;
  /** The shared state, or what its credential is verified with, cannot be reached: it may only read what this process knows. */
  readonly degraded: boolean;
  /** Authenticates again with the same credential. @throws NotServed when it is no longer valid */
  readonly confirm: () => Promise<void>;
}

/**
 * An operator as people know it: the person, the name of its key, else the agent that a key admits to, whose principal is a digest.
 * Audit records have the principal.
 */
export function nameOperator({ agent, session }: Pick<Operator, 'agent' | 'session'>): string {
  const { principal, keyName, definition } = agent;
  return session?.person?.name ?? keyName ?? (principal.startsWith('key:') ? definition.name : principal);
}

type Identified = Pick<Operator, 'agent' | 'degraded'>;

/** Headers of programs, which show a credential with every request. They take precedence over the cookie. */
const CREDENTIALS = ['authorization', 'x-mcp-api-key', 'x-parse-session-token'];

/**
 * Authenticates operators: callers that the authenticator recognises and that are configured as operators.
 */
@Injectable()
export class OperatorGate {
  private readonly limiter: RateLimiter;
  /** Counts while the other one cannot. */
  private readonly ownLimiter = new ProcessRateLimiters().limiter('console', REQUESTS);

  constructor(
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(OperatorSessions) private readonly sessions: OperatorSessions,
    @Inject(OPERATOR_RIGHTS) private readonly rights: Omit<OperatorRights, 'approvers'>,
    @Inject(SharedState) { limiters }: Pick<SharedState, 'limiters'>,
    @Inject(SuspendedAgents) private readonly suspended: Pick<SuspendedAgents, 'assertActive'>,
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
        ? await this.ask(async () => ({ agent: await this.identify(request, headers), degraded: false }))
        : await this.bySession(request, headers, session);
    const isCounted = await this.countRequest(operator.agent.principal);
    return isCounted ? operator : { ...operator, degraded: true };
  }

  /** @returns false where the shared limit cannot be counted, and this process counted alone. @throws NotServed */
  private async countRequest(principal: string): Promise<boolean> {
    try {
      await spend(this.limiter, principal, 'Too Many Requests');
      return true;
    } catch (error) {
      if (!(error instanceof SharedStateUnavailable)) throw error;
      await spend(this.ownLimiter, principal, 'Too Many Requests');
      return false;
    }
  }

  /** @throws NotServed */
  async identify(request: IncomingMessage, credential: IncomingHttpHeaders): Promise<Agent> {
    return this.operator(await this.authenticate(request, credential));
  }

  /** The operator that a person of the issuer is, by the rules of the current configuration. @throws NotServed */
  async proven(person: ProvenPerson): Promise<Agent> {
    const agent = this.rights.findAgent?.(person) ?? null;
    if (!agent) throw new NotServed(403, 'this person is no operator');
    return this.operator(agent);
  }

  /** Sub-agents cannot sign in, nor can suspended agents, however they prove who they are. @throws NotServed */
  private async operator(agent: Agent): Promise<Agent> {
    if (agent.depth !== 0 || !this.rights.operators().includes(agent.definition.name))
      throw new NotServed(403, 'this agent is no operator');
    try {
      await this.suspended.assertActive(agent);
    } catch (error) {
      throw toNotServed(error);
    }
    return agent;
  }

  private async bySession(
    request: IncomingMessage,
    headers: IncomingHttpHeaders,
    session: OperatorSession | 'over' | 'forged',
  ): Promise<Operator> {
    const place = readPlace(request);
    // A cookie that this service did not seal is a wrong credential, unlike an expired one.
    if (session === 'forged' && this.authenticator instanceof RecordedAuthenticator)
      this.authenticator.recordRefused(
        { headers, remoteAddress: request.socket.remoteAddress },
        FORGED_SESSION,
      );
    if (session === 'forged' || session === 'over') throw signInAgain(place);
    const operator = await this.ask(() => this.verify(request, session)).catch((error: unknown) => {
      throw error instanceof NotServed && error.status === 401 ? signInAgain(place) : error;
    });
    return { ...operator, session };
  }

  /**
   * Whose session it is. While that cannot be looked up, what this process verified shortly before counts, as long as the
   * configuration is the same.
   */
  private async verify(request: IncomingMessage, session: OperatorSession): Promise<Identified> {
    const { verified } = this.sessions;
    try {
      if (await this.sessions.isOver(session)) throw new NotServed(401, 'sign in again');
      const { person } = session;
      const agent = await (person ? this.proven(person) : this.identify(request, session.credential));
      verified.keep(session.id, agent);
      return { agent, degraded: false };
    } catch (error) {
      if (!isSilent(error)) {
        verified.forget(session.id);
        throw error;
      }
      const agent = verified.find(session.id);
      if (!agent || this.sessions.isExpired(session) || !this.rights.isCurrent(agent)) throw error;
      await this.assertNotRefused(request, session);
      return { agent: await this.operator(agent), degraded: true };
    }
  }

  /** What can be verified without the shared state still counts: a key may have ended. @throws NotServed */
  private async assertNotRefused(
    request: IncomingMessage,
    { person, credential }: OperatorSession,
  ): Promise<void> {
    if (person) return;
    await this.identify(request, credential).catch((error: unknown) => {
      if (!isSilent(error)) throw error;
    });
  }

  private async ask(identify: () => Promise<Identified>): Promise<Operator> {
    const { agent, degraded } = await identify();
    const confirm = async () => {
      const again = await identify();
      if (again.agent.principal !== agent.principal) throw new NotServed(401, 'Unauthorized');
    };
    return { agent, degraded, confirm };
  }

  private async authenticate(request: IncomingMessage, headers: IncomingHttpHeaders): Promise<Agent> {
    const { remoteAddress } = request.socket;
    try {
      return await this.authenticator.authenticate({ headers, remoteAddress, method: 'GET' });
    } catch (error) {
      throw toNotServed(error);
    }
  }
}

/** Any other error is returned as it is. */
function toNotServed(error: unknown): unknown {
  if (error instanceof Unauthorized) return new NotServed(401, 'Unauthorized');
  return error instanceof Refused ? new NotServed(403, error.refusal.message) : error;
}

/** What a credential is verified with does not answer. */
const isSilent = (error: unknown): boolean =>
  error instanceof SharedStateUnavailable || error instanceof AuthenticationUnavailable;

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

/** Whether a store may have done what it did not confirm. */
const isLost = (error: unknown): boolean =>
  error instanceof SharedStateUnavailable ||
  isOutcomeUnknown(error) ||
  (error instanceof Refused && error.refusal.details?.outcome === 'unknown');

/** Records the actions of operators in the audit log. */
@Injectable()
export class OperatorNotes {
  private readonly log = new Logger('Console');

  constructor(@Inject(AuditSink) private readonly audit: Pick<AuditSink, 'recordEvent'>) {}

  /** Does what an operator asks for. Where the answer of a store is lost it may have been done, and is recorded as that. */
  async noteIfLost<T>(
    operator: Pick<Operator, 'agent'>,
    action: string,
    {
      target,
      reason,
      work,
    }: { readonly target: string; readonly reason?: string; readonly work: () => Promise<T> },
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isLost(error))
        this.write(operator, action, target, {
          isUnconfirmed: true,
          ...(reason !== undefined && { reason }),
        });
      throw error;
    }
  }

  /** A failure to record does not undo the action. */
  write(
    { agent }: Pick<Operator, 'agent'>,
    action: string,
    target?: string,
    { reason, isUnconfirmed = false }: { readonly reason?: string; readonly isUnconfirmed?: boolean } = {},
  ): void {
    try {
      this.audit.recordEvent({
        type: 'operator_action',
        at: new Date().toISOString(),
        success: true,
        action,
        ...(target !== undefined && { target: cutText(target, 200) }),
        ...(reason !== undefined && { reason }),
        ...(isUnconfirmed && { unconfirmed: true as const }),
        principal: agent.principal,
        agent_name: agent.definition.name,
        ...(agent.keyName !== null && { key_name: agent.keyName }),
        ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
      });
    } catch (error) {
      this.log.error(`an operator's action was not recorded: ${String(error)}`);
    }
  }
}
