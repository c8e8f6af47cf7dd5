import { HttpException, type Provider } from '@nestjs/common';
import {
  Agent,
  type AgentShape,
  type AgentShapeOptions,
  type Identity,
  isConstraint,
  isCorrelationId,
  isUserId,
  MASTER,
  roleNameOf,
  sessionIdentity,
  Unauthorized,
} from '#core';
import { AuditSink } from '#audit';
import { Authenticator, type CredentialSource, DelegatingAuthenticator, RecordedAuthenticator } from '#auth';
import { assertChoice, ConfigVersions } from '#config';

/** As whom a request runs. */
export interface AgentChoice {
  /** Name of an agent of the configuration. */
  readonly agent: string;
  /** Who is calling, stable over requests: the key of rate limits, budgets and sessions. */
  readonly principal: string;
  /**
   * With whose rights it reads, in the place of the named agent's own; never the master key. Default: those of the named
   * agent, where these need no caller's session or token. Null is an error.
   */
  readonly identity?: { readonly user: string } | { readonly role: string } | { readonly session: string };
  /** In the place of the named agent's own. Default: that of the named agent. */
  readonly tenantId?: string | number;
  /** What else is known of the caller, for a `tenantScope` that reads a claim and for filters that are functions. Default: nothing. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Threads audit records and database comments in place of the `Mcp-Session-Id`: `[A-Za-z0-9._-]{1,128}`. Default: the header's. */
  readonly correlationId?: string;
}

/**
 * As whom code calls: as a request does, or within limits of its own, by default with the master key. Calls within the same
 * object of limits count together.
 */
export type CodeChoice = Omit<AgentChoice, 'agent'> & { readonly agent: string | AgentShapeOptions };

/**
 * @param source who chose, for errors
 * @throws AgentOptionsError, a TypeError, for members that a choice has not, and an identity that is none or the master key
 * @throws TypeError for a choice that cannot be
 */
export function chosenAgent(
  editions: Pick<ConfigVersions, 'current' | 'shapeOf'>,
  choice: AgentChoice,
  source: string,
): Agent {
  assertChoice(source, choice);
  const shape = editions.shapeOf(choice.agent);
  if (!shape) throw new TypeError(`no agent is named '${choice.agent}'`);
  return made(shape, choice, () => ownIdentity(editions, choice.agent));
}

/** An agent that no configuration names, under the policy that is served. @throws TypeError */
export function agentWithin(shape: AgentShape, choice: Omit<AgentChoice, 'agent'>): Agent {
  return made(shape, choice, () => MASTER);
}

function made(shape: AgentShape, choice: Omit<AgentChoice, 'agent'>, own: () => Identity): Agent {
  const { principal, tenantId, claims, correlationId } = choice;
  const { name } = shape;
  if (typeof principal !== 'string' || principal === '')
    throw new TypeError(`'${name}' was chosen for nobody: principal must be a text`);
  if (tenantId !== undefined && !isTenant(tenantId))
    throw new TypeError(`'${name}' was chosen with a tenantId that is no text or number`);
  if (correlationId !== undefined && !isCorrelationId(correlationId))
    throw new TypeError(
      `'${name}' was chosen with a correlationId that is not 1 to 128 of A-Z a-z 0-9 . _ -`,
    );
  if (claims !== undefined && !isConstraint(claims))
    throw new TypeError(`'${name}' was chosen with claims that are no object`);
  const identity = choice.identity === undefined ? own() : chosenIdentity(name, choice.identity);
  if (shape.clientMode && identity.kind !== 'sessionToken')
    throw new TypeError(`'${name}' is in client mode: it reads with a session alone`);
  return new Agent({
    shape,
    principal,
    identity,
    ...(tenantId !== undefined && { tenantId }),
    ...(claims !== undefined && { claims }),
    ...(correlationId !== undefined && { correlationId }),
  });
}

/** An empty text, and a number that JSON writes as null, would be the tenant of all rows without one. */
function isTenant(value: unknown): value is string | number {
  return typeof value === 'string' ? value !== '' : Number.isFinite(value);
}

function ownIdentity(editions: Pick<ConfigVersions, 'current'>, agent: string): Identity {
  const own = editions.current.identities.get(agent);
  if (
    own === undefined ||
    own === 'callerSession' ||
    own.kind === 'impersonate' ||
    own.kind === 'claimedUser'
  )
    throw new TypeError(`'${agent}' reads with what callers show: choose its identity with it`);
  return own;
}

/** Chosen identities only ever narrow: none of them is the master key. */
function chosenIdentity(agent: string, identity: NonNullable<AgentChoice['identity']>): Identity {
  if ('session' in identity && typeof identity.session === 'string' && identity.session !== '')
    return sessionIdentity(identity.session);
  if ('user' in identity && typeof identity.user === 'string' && isUserId(identity.user))
    return { kind: 'aclUser', userId: identity.user };
  const role = 'role' in identity && typeof identity.role === 'string' ? roleNameOf(identity.role) : '';
  if (role === '') throw new TypeError(`'${agent}' was chosen with an identity that is nobody`);
  return { kind: 'aclRole', role };
}

/** Returns for each request the agent it runs as; null admits nobody: the caller receives 401. */
export type AgentChooser = (request: CredentialSource) => AgentChoice | null | Promise<AgentChoice | null>;

const isRefusal = (error: unknown) =>
  error instanceof HttpException && (error.getStatus() === 401 || error.getStatus() === 403);

/** Makes agents of what the application's own code chooses. A choice that cannot be is an internal error and admits nobody. */
type AgentOf = (choice: AgentChoice) => Agent;

class ChosenAgents extends Authenticator {
  constructor(
    private readonly agentOf: AgentOf,
    private readonly choose: AgentChooser,
  ) {
    super();
  }

  async authenticate(request: CredentialSource): Promise<Agent> {
    const choice = await unlessRefused(async () => this.choose(request));
    // Code without types may return undefined.
    if (!choice) throw new Unauthorized();
    return this.agentOf(choice);
  }
}

/** What an application's own `Authenticator` is given: a request, and the one way to make an agent for it. */
export interface AdmissionRequest extends CredentialSource {
  /** The agent of this choice, for this request alone. @throws TypeError for a choice that cannot be */
  admit(choice: AgentChoice): Agent;
}

/** An agent that was not made here could have any rights: it admits nobody. */
class AdmittedAgents extends DelegatingAuthenticator {
  constructor(
    private readonly agentOf: AgentOf,
    private readonly bound: Authenticator,
  ) {
    super();
  }

  override async authenticate(request: CredentialSource): Promise<Agent> {
    const admitted = new Set<Agent>();
    const asked: AdmissionRequest = {
      ...request,
      admit: (choice) => {
        const agent = this.agentOf(choice);
        admitted.add(agent);
        return agent;
      },
    };
    const agent = await unlessRefused(() => this.bound.authenticate(asked));
    if (agent === null) throw new Unauthorized();
    if (!admitted.has(agent)) throw new TypeError('an agent that admit() did not make for this request');
    return agent;
  }

  /** Authenticators written for earlier versions lack this method. */
  override showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return 'showsCredential' in this.bound
      ? this.bound.showsCredential(request)
      : Authenticator.prototype.showsCredential.call(this, request);
  }

  protected inner(): Authenticator {
    return this.bound;
  }
}

/** Null where the application's code throws a 401 or 403 of Nest. */
async function unlessRefused<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}

/** Records every refused caller, whichever code refused it. */
function recorded(source: string, of: (agentOf: AgentOf) => Authenticator): Provider {
  return {
    provide: Authenticator,
    useFactory: (editions: ConfigVersions, audit: AuditSink) =>
      new RecordedAuthenticator(
        of((choice) => chosenAgent(editions, choice, source)),
        audit,
      ),
    inject: [ConfigVersions, AuditSink],
  };
}

/** In the place of the rules of `auth`. */
export const chosenBy = (choose: AgentChooser): Provider =>
  recorded('AGENT_FACTORY', (agentOf) => new ChosenAgents(agentOf, choose));

/** In the place of the rules of `auth`. */
export const admittedBy = (bound: Authenticator): Provider =>
  recorded('admit', (agentOf) => new AdmittedAgents(agentOf, bound));
