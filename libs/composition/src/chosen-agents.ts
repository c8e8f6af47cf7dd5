import { HttpException } from '@nestjs/common';
import { type Agent, Unauthorized } from '#agent';
import { Authenticator, type CredentialSource } from '#auth';
import { type AgentChoice, chosenAgent } from './agent-choice.js';
import type { Editions } from './editions/editions.js';

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
    return chosenAgent(this.editions, choice);
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
}
