import { Injectable } from '@nestjs/common';
import {
  type McpRequest,
  Refused,
  refusals,
  SubAgentError,
  SubAgents,
  Tool,
  type ToolCall,
  ToolRunner,
} from '@parley/server';
import { z } from 'zod';
import { Model } from './model.js';

/** Steps after which the researcher is stopped, whatever its model wants. */
const MAX_STEPS = 8;

const Research = z.object({
  task: z.string().min(1).max(2000),
  classes: z
    .array(z.string())
    .default(['Article'])
    .describe('What the researcher may read, of what you may read'),
});
const Report = z.object({
  tools: z.array(z.string()),
  steps: z.array(z.object({ tool: z.string(), refused: z.string().optional() })),
  answers: z.array(z.string()),
});

@Injectable()
export class ResearchTools {
  constructor(
    private readonly subAgents: SubAgents,
    private readonly runner: ToolRunner,
    private readonly model: Model,
  ) {}

  @Tool({
    name: 'research',
    description: 'Hands a task to a researcher, who sees published articles and nothing else.',
    input: Research,
    output: Report,
    timeout: 120,
  })
  async research({ task, classes }: z.output<typeof Research>, call: ToolCall) {
    const researcher = await this.researcherFor(call, classes);
    const tools = this.runner.list(researcher).map(({ name }) => name);
    const answers: string[] = [];
    const steps: { readonly tool: string; readonly refused?: string }[] = [];
    while (answers.length < MAX_STEPS && !call.signal.aborted) {
      const step = await this.model.next(task, tools, answers);
      if (!step) break;
      // Through every gate that a call from outside passes, as the researcher.
      const outcome = await this.runner.run(step.tool, step.args, researcher);
      answers.push(outcome.ok ? outcome.text : outcome.refusal.message);
      steps.push({ tool: step.tool, ...(!outcome.ok && { refused: outcome.refusal.code }) });
      call.progress({ progress: answers.length, message: step.tool });
    }
    return { tools, steps, answers };
  }

  /** Never more rights than the caller: each list is the intersection. An empty intersection or a higher tier is refused. */
  private async researcherFor(call: ToolCall, classes: readonly string[]): Promise<McpRequest> {
    try {
      return await this.subAgents.delegate(call, {
        name: 'researcher',
        permissions: 'readonly',
        tools: { only: ['query_class', 'count_objects', 'get_object'] },
        classes: { only: [...classes] },
        filters: { Article: { status: 'published' } },
        rateLimit: 100,
        rateWindow: 60,
      });
    } catch (error) {
      if (!(error instanceof SubAgentError)) throw error;
      throw new Refused(refusals.invalidArgument('a researcher cannot have what you have not'));
    }
  }
}
