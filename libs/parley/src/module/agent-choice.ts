import { HttpException, type Provider } from '@nestjs/common';
import {
  Agent,
  type AgentDefinition,
  type AgentDefinitionOptions,
  type Identity,
  isConstraint,
  isCorrelationId,
  isUserId,
  MASTER,
  toRoleName,
  sessionIdentity,
  Unauthorized,
} from '#core';
import { AuditSink } from '#audit';
import { Authenticator, type CredentialSource, RecordedAuthenticator } from '#auth';
import { assertChoice, ConfigVersions } from '#config';
import { SuspendedAgents } from '#state';

/** The agent and identity that a request runs as. */
export interface AgentChoice {
  /** Name of an agent of the configuration. */
  readonly agent: string;
  /**
   * The caller, stable over requests: the key of rate limits, budgets and sessions. `{ $agent: user }` in row filters is
   * the `sub` of `claims`, and without one this text.
   */
  readonly principal: string;
  /**
   * The identity whose rights it reads with, instead of the named agent's own; never the master key. Default: that of
   * the named agent, if it needs no session or token of the caller. Null is an error.
   */
  readonly identity?: { readonly user: string } | { readonly role: string } | { readonly session: string };
  /** Replaces the tenant of the named agent. Default: that of the named agent. */
  readonly tenantId?: string | number;
  /**
   * Further claims of the caller, for a `tenantScope` that reads a claim and for filters that are functions. Default:
   * none.
   */
  readonly claims?: Readonly<Record<string, unknown>>;
  /**
   * Links audit records and database comments instead of the `Mcp-Session-Id`: `[A-Za-z0-9._-]{1,128}`. Default: the
   * header's.
   */
  readonly correlationId?: string;
}

/**
 * The agent that code calls as: chosen like for a request, or with its own limits, by default with the master key.
 * Calls with the same limits object count together.
 */
export type CodeChoice = Omit<AgentChoice, 'agent'> & { readonly agent: string | AgentDefinitionOptions };

/**
 * @param source origin of the choice, for errors
 * @throws AgentOptionsError, a TypeError, for unknown members of a choice, and for an invalid identity or the master
 * key
 * @throws TypeError for an invalid choice
 */
export function chosenAgent(
  versions: Pick<ConfigVersions, 'current' | 'findDefinition'>,
  choice: AgentChoice,
  source: string,
): Agent {
  assertChoice(source, choice);
  const definition = versions.findDefinition(choice.agent);
  if (!definition) throw new TypeError(`no agent is named '${choice.agent}'`);
  return made(definition, choice, () => ownIdentity(versions, choice.agent));
}

/** An agent outside the configuration, under the served policy. @throws TypeError */
export function agentWithin(definition: AgentDefinition, choice: Omit<AgentChoice, 'agent'>): Agent {
  return made(definition, choice, () => MASTER);
}

function made(definition: AgentDefinition, choice: Omit<AgentChoice, 'agent'>, own: () => Identity): Agent {
  const { principal, tenantId, claims, correlationId } = choice;
  const { name } = definition;
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
  if (definition.clientMode && identity.kind !== 'sessionToken')
    throw new TypeError(
      `'${name}' is in client mode and reads with a session alone: write identity: { session: 'TOKEN' }`,
    );
  return new Agent({
    definition,
    principal,
    user: principal,
    identity,
    ...(tenantId !== undefined && { tenantId }),
    ...(claims !== undefined && { claims }),
    ...(correlationId !== undefined && { correlationId }),
  });
}

/** An empty text, and a number that JSON writes as null, would match all rows without a tenant. */
function isTenant(value: unknown): value is string | number {
  return typeof value === 'string' ? value !== '' : Number.isFinite(value);
}

function ownIdentity(versions: Pick<ConfigVersions, 'current'>, agent: string): Identity {
  const own = versions.current.identities.get(agent);
  if (
    own === undefined ||
    own === 'callerSession' ||
    own.kind === 'impersonate' ||
    own.kind === 'claimedUser'
  )
    throw new TypeError(`'${agent}' reads with what callers show: choose its identity with it`);
  return own;
}

/** A chosen identity only narrows rights: the master key is refused. */
function chosenIdentity(agent: string, identity: NonNullable<AgentChoice['identity']>): Identity {
  if ('session' in identity && typeof identity.session === 'string' && identity.session !== '')
    return sessionIdentity(identity.session);
  if ('user' in identity && typeof identity.user === 'string' && isUserId(identity.user))
    return { kind: 'aclUser', userId: identity.user };
  const role = 'role' in identity && typeof identity.role === 'string' ? toRoleName(identity.role) : '';
  if (role === '') throw new TypeError(`'${agent}' was chosen with an identity that is nobody`);
  return { kind: 'aclRole', role };
}

/** Returns the agent of each request; null refuses the caller with 401. */
export type AgentChooser = (request: CredentialSource) => AgentChoice | null | Promise<AgentChoice | null>;

const isRefusal = (error: unknown) =>
  error instanceof HttpException && (error.getStatus() === 401 || error.getStatus() === 403);

/** Creates agents from the choices of application code. An invalid choice is an internal error and admits no caller. */
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
    // Untyped code may return undefined.
    if (!choice) throw new Unauthorized();
    return this.agentOf(choice);
  }
}

/** The input of an application's own `Authenticator`: a request, and the only method that creates an agent for it. */
export interface AdmissionRequest extends CredentialSource {
  /** The agent of this choice, for this request alone. @throws TypeError for an invalid choice */
  admit(choice: AgentChoice): Agent;
}

/**
 * Authenticates a request by an application's code. An agent that was not created here could have any rights, so it is
 * refused.
 */
const admitOwn = (agentOf: AgentOf, bound: Authenticator) => async (request: CredentialSource) => {
  const admitted = new Set<Agent>();
  const admission: AdmissionRequest = {
    ...request,
    admit: (choice) => {
      const agent = agentOf(choice);
      admitted.add(agent);
      return agent;
    },
  };
  const agent = await unlessRefused(() => bound.authenticate(admission));
  if (agent === null) throw new Unauthorized();
  if (!admitted.has(agent)) throw new TypeError('an agent that admit() did not make for this request');
  return agent;
};

/** Returns null where the application's code throws a 401 or 403 of Nest. */
async function unlessRefused<T>(authenticate: () => Promise<T>): Promise<T | null> {
  try {
    return await authenticate();
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}

/** Records every refused caller, whichever code refused it. */
function runRecorded(
  source: string,
  open: (agentOf: AgentOf, ...dependencies: [AuditSink, SuspendedAgents]) => RecordedAuthenticator,
): Provider {
  return {
    provide: Authenticator,
    useFactory: (versions: ConfigVersions, audit: AuditSink, suspended: SuspendedAgents) =>
      open((choice) => chosenAgent(versions, choice, source), audit, suspended),
    inject: [ConfigVersions, AuditSink, SuspendedAgents],
  };
}

/** Replaces the rules of `auth`. */
export const chosenBy = (choose: AgentChooser): Provider =>
  runRecorded('AGENT_FACTORY', (agentOf, audit, suspended) => {
    const chosen = new ChosenAgents(agentOf, choose);
    return new RecordedAuthenticator(() => chosen, audit, suspended);
  });

/** Replaces the rules of `auth`. */
export const listAdmitted = (bound: Authenticator): Provider =>
  runRecorded(
    'admit',
    (agentOf, audit, suspended) =>
      new RecordedAuthenticator(() => bound, audit, suspended, { admit: admitOwn(agentOf, bound) }),
  );
