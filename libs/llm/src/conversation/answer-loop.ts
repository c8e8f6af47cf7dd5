import type { ModelMessage, ModelRequest, ModelTurn, OfferedTool } from '../model/language-model.js';
import { LanguageModelError } from '../model/model-error.js';
import type { ToolDesk } from '../tools/tool-desk.js';
import type { AnswerEnd } from './answer.js';
import { fixedSize } from './estimated-size.js';
import { fitMessages } from './fit-messages.js';
import type { ConversationListener, MadeCall } from './listener.js';
import { makeCalls } from './made-calls.js';

export interface LoopLimits {
  /** Turns of the model per question. Default 8. */
  readonly maxIterations: number;
  /** Estimated tokens of one request; older results and older questions make room. Default 100,000. */
  readonly maxContextTokens: number;
  /** Characters of one tool result that a model is given. Default 60,000. */
  readonly maxResultCharacters: number;
}

interface LoopParts {
  readonly desk: ToolDesk;
  readonly listener: Required<ConversationListener>;
  readonly signal: AbortSignal;
  readonly limits: Partial<LoopLimits>;
  readonly system: string;
  readonly turn: (request: ModelRequest) => Promise<ModelTurn>;
}

interface FoundAnswer {
  readonly text: string;
  readonly end: AnswerEnd;
  readonly toolCalls: readonly MadeCall[];
  readonly transcript: readonly ModelMessage[];
}

/** From one question to its answer: the model is asked, its calls are made, and it is asked again with what they came to. */
export class AnswerLoop {
  private readonly limits: LoopLimits;

  constructor(private readonly parts: LoopParts) {
    const { maxIterations = 8, maxContextTokens = 100_000, maxResultCharacters = 60_000 } = parts.limits;
    this.limits = { maxIterations, maxContextTokens, maxResultCharacters };
  }

  /** @param before what was said for earlier questions */
  async answer(before: readonly ModelMessage[], question: string): Promise<FoundAnswer> {
    const { desk, signal, turn, listener } = this.parts;
    const tools = await desk.list(signal);
    const messages: ModelMessage[] = [...before, { role: 'user', text: question }];
    const toolCalls: MadeCall[] = [];
    let text = '';
    let end: AnswerEnd = 'max-iterations';
    for (let iteration = 0; iteration < this.limits.maxIterations; iteration += 1) {
      const said = await turn(this.request(messages, before.length, tools));
      listener.onModelTurn(said.text);
      if (said.text.trim() !== '') text = said.text;
      messages.push({ role: 'assistant', text: said.text, calls: said.stop === 'tools' ? said.calls : [] });
      if (said.stop !== 'tools') {
        end = said.stop === 'done' ? 'answered' : said.stop;
        break;
      }
      const executed = await makeCalls(said.calls, {
        desk,
        offered: tools,
        signal,
        listener,
        maxResult: this.limits.maxResultCharacters,
      });
      toolCalls.push(...executed.map(({ made }) => made));
      messages.push({ role: 'tool', results: executed.map(({ result }) => result) });
    }
    return { text, end, toolCalls, transcript: messages.slice(before.length) };
  }

  private request(
    messages: readonly ModelMessage[],
    earlier: number,
    tools: readonly OfferedTool[],
  ): ModelRequest {
    const { system } = this.parts;
    const room = this.limits.maxContextTokens - fixedSize({ system, tools });
    const fitting = fitMessages(messages, earlier, room);
    if (!fitting)
      throw new LanguageModelError(
        'no-room',
        `the question and what the tools returned do not fit into ${this.limits.maxContextTokens} tokens`,
      );
    return { system, messages: fitting, tools };
  }
}
