import { HttpException, type Provider } from '@nestjs/common';
import { type Agent, Unauthorized } from '#agent';
import { AuditSink } from '#audit';
import { Authenticator, type CredentialSource, OuterAuthenticator, RecordedAuthenticator } from '#auth';
import { type AgentChoice, chosenAgent } from './agent-choice.js';
import { ConfigVersions } from '#config';

/** Answers per request as whom it runs; null: nobody, which the caller is told with 401. */
export type AgentChooser = (request: CredentialSource) => AgentChoice | null | Promise<AgentChoice | null>;

const isRefusal = (error: unknown) =>
  error instanceof HttpException && (error.getStatus() === 401 || error.getStatus() === 403);

/** Makes agents of what the application's own code chooses. What it chooses badly is our own fault and admits nobody. */
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
    // Code without types may answer with nothing at all.
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
class AdmittedAgents extends OuterAuthenticator {
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

  /** Objects that were bound before there was this question do not answer it. */
  override showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return 'showsCredential' in this.bound
      ? this.bound.showsCredential(request)
      : Authenticator.prototype.showsCredential.call(this, request);
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
