import type { JsonObject } from '#dispatcher';
import type { ModelRequest } from '../model/language-model.js';
import type { ModelWire } from '../model/model-wire.js';
import { type GatheredAnswer, WiredModel } from '../model/wired-model.js';
import { OpenAiAnswer } from './openai-answer.js';
import { openAiRequest } from './openai-request.js';

/** OpenAI's chat completions, and every server that speaks them: LM Studio, Ollama, vLLM. */
export class OpenAiModel extends WiredModel {
  constructor(
    readonly provider: string,
    readonly model: string,
    wire: ModelWire,
  ) {
    super(wire);
  }

  protected requestOf(request: ModelRequest): JsonObject {
    return openAiRequest(this.model, request);
  }

  protected answer(onText: (text: string) => void): GatheredAnswer {
    return new OpenAiAnswer(onText);
  }
}
