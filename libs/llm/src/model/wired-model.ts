import type { JsonObject } from '#dispatcher';
import { EventJson, objectOf } from './event-json.js';
import { LanguageModel, type ModelRequest, type ModelTurn, type TurnWatch } from './language-model.js';
import type { ModelWire, WireAnswer } from './model-wire.js';

/** Gathers one answer of a provider's wire, whole or from the events of a stream. */
export interface GatheredAnswer {
  /** A payload that is no JSON and ends the stream. */
  readonly ending?: string;
  /** @returns whether the answer is over @throws LanguageModelError for an error that the server reports */
  take(event: JsonObject): boolean;
  /** An answer that was not streamed. @throws LanguageModelError */
  takeWhole(answer: JsonObject): ModelTurn;
  /** @param complete whether the stream said that it is over @throws LanguageModelError when it broke off */
  finished(complete: boolean): ModelTurn;
}

/** What models behind a wire have in common: a turn is one request, and what was heard of its answer is not asked for again. */
export abstract class WiredModel extends LanguageModel {
  constructor(private readonly wire: ModelWire) {
    super();
  }

  protected abstract requestOf(request: ModelRequest): JsonObject;
  protected abstract answer(onText: (text: string) => void): GatheredAnswer;

  withoutSecrets(text: string): string {
    return this.wire.withoutSecrets(text);
  }

  turn(request: ModelRequest, watch: TurnWatch): Promise<ModelTurn> {
    let heard = false;
    const onText = (text: string) => {
      heard = true;
      watch.onText?.(text);
    };
    const read = (answer: WireAnswer) => this.read(answer, this.answer(onText));
    return this.wire.send(this.requestOf(request), watch, read, () => heard);
  }

  private async read(answer: WireAnswer, gathered: GatheredAnswer): Promise<ModelTurn> {
    if (!answer.isStream) return gathered.takeWhole(objectOf(await answer.text(), this.wire.label));
    const json = new EventJson();
    for await (const { data } of answer.events()) {
      if (data === gathered.ending) return gathered.finished(true);
      const event = json.read(data);
      if (event && gathered.take(event)) return gathered.finished(true);
    }
    return gathered.finished(false);
  }
}
