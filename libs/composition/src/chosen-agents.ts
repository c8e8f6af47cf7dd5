import { HttpException } from '@nestjs/common';
import { Agent, type Identity, isUserId, roleNameOf, sessionIdentity, Unauthorized } from '#agent';
import { Authenticator, type CredentialSource } from '#auth';
import type { Editions } from './editions/editions.js';

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

/** Admits whom the application's own code chooses. What it chooses badly is our own fault and admits nobody. */
export class ChosenAgents extends Authenticator {
  constructor(
    private readonly editions: Pick<Editions, 'current' | 'shapeOf'>,
    private readonly choose: AgentChooser,
  ) {
    super();
  }

  async authenticate(request: CredentialSource): Promise<Agent> {
    const choice = await this.choiceFor(request);
    if (choice === null) throw new Unauthorized();
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

  private async choiceFor(request: CredentialSource): Promise<AgentChoice | null> {
    try {
      // Code without types may answer with nothing at all.
      return (await this.choose(request)) ?? null;
    } catch (error) {
      if (isRefusal(error)) return null;
      throw error;
    }
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
