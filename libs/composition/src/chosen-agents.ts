import { HttpException, type Provider } from '@nestjs/common';
import { AuditSink } from '#audit';
import { Agent, type Identity, isUserId, roleNameOf, sessionIdentity, Unauthorized } from '#agent';
import { Authenticator, type CredentialSource, OuterAuthenticator, RecordedAuthenticator } from '#auth';
import { Editions } from './editions/editions.js';

/** As whom a request runs. */
export interface AgentChoice {
  /** Name of an agent of the configuration. */
  readonly agent: string;
  /** Who is calling, stable over requests: the key of rate limits, budgets and sessions. */
  readonly principal: string;
  /** With whose rights it reads. Default: those of the named agent, where these need no caller's session or token. */
  readonly identity?: { readonly user: string } | { readonly role: string } | { readonly session: string };
  /** Default: that of the named agent. */
  readonly tenantId?: string | number;
}

/** Answers per request as whom it runs; null: nobody, which the caller is told with 401. */
export type AgentChooser = (request: CredentialSource) => AgentChoice | null | Promise<AgentChoice | null>;

const isRefusal = (error: unknown) =>
  error instanceof HttpException && (error.getStatus() === 401 || error.getStatus() === 403);

/** Makes agents of what the application's own code chooses. What it chooses badly is our own fault and admits nobody. */
class AgentsByChoice {
  constructor(private readonly editions: Pick<Editions, 'current' | 'shapeOf'>) {}

  /** @throws TypeError */
  agentOf(choice: AgentChoice): Agent {
    const { agent: name, principal, tenantId } = choice;
    const shape = this.editions.shapeOf(name);
    if (!shape) throw new TypeError(`no agent is named '${name}'`);
    if (typeof principal !== 'string' || principal === '')
      throw new TypeError(`'${name}' was chosen for nobody: principal must be a text`);
    if (tenantId !== undefined && typeof tenantId !== 'string' && typeof tenantId !== 'number')
      throw new TypeError(`'${name}' was chosen with a tenantId that is no text or number`);
    const identity = this.identityOf(choice);
    if (shape.clientMode && identity.kind !== 'sessionToken')
      throw new TypeError(`'${name}' is in client mode: it reads with a session alone`);
    return new Agent({ shape, principal, identity, ...(tenantId !== undefined && { tenantId }) });
  }

  /** Chosen identities only ever narrow: none of them is the master key. */
  private identityOf({ agent, identity }: AgentChoice): Identity {
    if (identity === undefined) {
      const own = this.editions.current.identities.get(agent);
      if (
        own === undefined ||
        own === 'callerSession' ||
        own.kind === 'impersonate' ||
        own.kind === 'claimedUser'
      )
        throw new TypeError(`'${agent}' reads with what callers show: choose its identity with it`);
      return own;
    }
    if ('session' in identity && typeof identity.session === 'string' && identity.session !== '')
      return sessionIdentity(identity.session);
    if ('user' in identity && typeof identity.user === 'string' && isUserId(identity.user))
      return { kind: 'aclUser', userId: identity.user };
    const role = 'role' in identity && typeof identity.role === 'string' ? roleNameOf(identity.role) : '';
    if (role === '') throw new TypeError(`'${agent}' was chosen with an identity that is nobody`);
    return { kind: 'aclRole', role };
  }
}

class ChosenAgents extends Authenticator {
  constructor(
    private readonly agents: AgentsByChoice,
    private readonly choose: AgentChooser,
  ) {
    super();
  }

  async authenticate(request: CredentialSource): Promise<Agent> {
    const choice = await unlessRefused(async () => this.choose(request));
    // Code without types may answer with nothing at all.
    if (!choice) throw new Unauthorized();
    return this.agents.agentOf(choice);
  }
}

/** What an application's own `Authenticator` is given: a request, and the one way to make an agent for it. */
export interface AdmissionRequest extends CredentialSource {
  /** @throws TypeError for a choice that cannot be */
  admit(choice: AgentChoice): Agent;
}

/** An agent that was not made here could have any rights: it admits nobody. */
class AdmittedAgents extends OuterAuthenticator {
  constructor(
    private readonly agents: AgentsByChoice,
    private readonly bound: Authenticator,
  ) {
    super();
  }

  override async authenticate(request: CredentialSource): Promise<Agent> {
    const admitted = new Set<Agent>();
    const asked: AdmissionRequest = {
      ...request,
      admit: (choice) => {
        const agent = this.agents.agentOf(choice);
        admitted.add(agent);
        return agent;
      },
    };
    const agent = await unlessRefused(() => this.bound.authenticate(asked));
    if (agent === null) throw new Unauthorized();
    if (!admitted.has(agent)) throw new TypeError('an agent that admit() did not make for this request');
    return agent;
  }

  protected inner(): Authenticator {
    return this.bound;
  }
}

/** Null where the application's code says no in Nest's words. */
async function unlessRefused<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}

/** Who is not let in is written down, whoever says so. */
function recorded(of: (agents: AgentsByChoice) => Authenticator): Provider {
  return {
    provide: Authenticator,
    useFactory: (editions: Editions, audit: AuditSink) =>
      new RecordedAuthenticator(of(new AgentsByChoice(editions)), audit),
    inject: [Editions, AuditSink],
  };
}

/** In the place of the rules of `auth`. */
export const chosenBy = (choose: AgentChooser): Provider =>
  recorded((agents) => new ChosenAgents(agents, choose));

/** In the place of the rules of `auth`. */
export const admittedBy = (bound: Authenticator): Provider =>
  recorded((agents) => new AdmittedAgents(agents, bound));
