import { Injectable } from '@nestjs/common';

/** A tool that the model wants to be called. */
export interface Step {
  readonly tool: string;
  readonly args: unknown;
}

/** What decides about the next step. */
export abstract class Model {
  /**
   * @param tools the tools that it may call
   * @param answers to the steps so far, as texts
   * @returns null when it is done
   */
  abstract next(task: string, tools: readonly string[], answers: readonly string[]): Promise<Step | null>;
}

/**
 * Does whatever the text says, line by line (`tool {arguments}`), as a model does that was talked into something. It needs
 * no network, and no worse one can be had.
 */
@Injectable()
export class InstructedModel extends Model {
  async next(task: string, _tools: readonly string[], answers: readonly string[]): Promise<Step | null> {
    const line = task.split('\n')[answers.length]?.trim();
    if (line === undefined || line === '') return null;
    const [tool = '', ...rest] = line.split(' ');
    return { tool, args: JSON.parse(rest.join(' ') || '{}') as unknown };
  }
}
