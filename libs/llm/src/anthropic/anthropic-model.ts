import { EventJson, objectOf } from '../model/event-json.js';
import { LanguageModel, type ModelRequest, type ModelTurn, type TurnWatch } from '../model/language-model.js';
import type { ModelWire, WireAnswer } from '../model/model-wire.js';
import { AnthropicAnswer } from './anthropic-answer.js';
import { anthropicRequest } from './anthropic-request.js';

/** Anthropic's messages. */
export class AnthropicModel extends LanguageModel {
  readonly provider = 'anthropic';

  constructor(
    readonly model: string,
    private readonly maxTokens: number,
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
    const read = (answer: WireAnswer) => readAnswer(answer, new AnthropicAnswer(onText));
    return this.wire.send(anthropicRequest(this.model, this.maxTokens, request), watch, read, () => heard);
  }
}

async function readAnswer(answer: WireAnswer, gathered: AnthropicAnswer): Promise<ModelTurn> {
  if (!answer.isStream) return gathered.takeWhole(objectOf(await answer.text(), 'Anthropic call'));
  const json = new EventJson();
  for await (const { data } of answer.events()) {
    const event = json.read(data);
    if (event && gathered.take(event)) return gathered.finished(true);
  }
  return gathered.finished(false);
}
