import { EventJson, objectOf } from '../model/event-json.js';
import { LanguageModel, type ModelRequest, type ModelTurn, type TurnWatch } from '../model/language-model.js';
import type { ModelWire, WireAnswer } from '../model/model-wire.js';
import { OpenAiAnswer } from './openai-answer.js';
import { openAiRequest } from './openai-request.js';

/** OpenAI's chat completions, and every server that speaks them: LM Studio, Ollama, vLLM. */
export class OpenAiModel extends LanguageModel {
  constructor(
    readonly provider: string,
    readonly model: string,
    private readonly wire: ModelWire,
  ) {
    super();
  }

  withoutSecrets(text: string): string {
    return this.wire.withoutSecrets(text);
  }

  turn(request: ModelRequest, watch: TurnWatch): Promise<ModelTurn> {
    let heard = false;
    const onText = (text: string) => {
      heard = true;
      watch.onText?.(text);
    };
    const read = (answer: WireAnswer) => readAnswer(answer, new OpenAiAnswer(onText));
    return this.wire.send(openAiRequest(this.model, request), watch, read, () => heard);
  }
}

async function readAnswer(answer: WireAnswer, gathered: OpenAiAnswer): Promise<ModelTurn> {
  if (!answer.isStream) {
    gathered.take(objectOf(await answer.text(), 'LLM call'));
    return gathered.finished(true);
  }
  const json = new EventJson();
  for await (const { data } of answer.events()) {
    if (data === '[DONE]') return gathered.finished(true);
    const chunk = json.read(data);
    if (chunk) gathered.take(chunk);
  }
  return gathered.finished(false);
}
