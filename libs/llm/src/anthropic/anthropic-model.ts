import type { JsonObject } from '#dispatcher';
import type { ModelRequest } from '../model/language-model.js';
import type { ModelWire } from '../model/model-wire.js';
import { type GatheredAnswer, WiredModel } from '../model/wired-model.js';
import { AnthropicAnswer } from './anthropic-answer.js';
import { anthropicRequest } from './anthropic-request.js';

/** Anthropic's messages. */
export class AnthropicModel extends WiredModel {
  readonly provider = 'anthropic';

  constructor(
    readonly model: string,
    private readonly maxTokens: number,
    wire: ModelWire,
  ) {
    super(wire);
  }

  protected requestOf(request: ModelRequest): JsonObject {
    return anthropicRequest(this.model, this.maxTokens, request);
  }

  protected answer(onText: (text: string) => void): GatheredAnswer {
    return new AnthropicAnswer(onText);
  }
}
