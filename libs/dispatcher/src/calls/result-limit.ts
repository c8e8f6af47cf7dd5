import { Inject, Injectable } from '@nestjs/common';
import type { Agent } from '#core';

/** Injection token: maximum bytes of the text of a result, for agents that have none of their own. */
export const MAX_RESULT_BYTES = Symbol('maximum bytes of a result');

/** How much text an agent receives at once: the result of a tool, a prompt, or a resource. */
@Injectable()
export class ResultLimit {
  constructor(@Inject(MAX_RESULT_BYTES) private readonly bytes: number) {}

  /** In bytes. */
  for({ definition }: Pick<Agent, 'definition'>): number {
    return definition.maxResultBytes ?? this.bytes;
  }

  /** The limit of the agent where the texts exceed it together; null: they do not. */
  exceededBy(texts: readonly string[], agent: Pick<Agent, 'definition'>): number | null {
    const limit = this.for(agent);
    return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) > limit ? limit : null;
  }
}
