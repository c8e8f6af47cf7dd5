import {
  type AnswerTo,
  type ClientAsks,
  type ClientQuestion,
  type FormAnswer,
  Refused,
  refusals,
} from '#agent';
import { ClientUnreachable } from '../client-link.js';
import type { DispatchContext } from '../dispatch-context.js';
import { member } from '../json-object.js';
import type { Dialect } from '../protocol-versions.js';
import { readAnswer } from './answer-reader.js';
import { isDeclared, wireRequest } from './question-wire.js';

/** Asks over the session's streams and waits for the reply. */
export class LegacyAsks implements ClientAsks {
  /** @param timeout milliseconds a client has for each question */
  constructor(
    private readonly context: DispatchContext,
    private readonly dialect: Dialect,
    private readonly timeout: number,
  ) {}

  canAnswer(question: ClientQuestion): boolean {
    return isDeclared(question, this.context.clientCapabilities, this.dialect);
  }

  /**
   * What a client sends back that does not answer the question counts as cancelled by whoever was asked.
   * @throws Refused when the client did not declare that it can answer. @throws ClientUnreachable
   */
  async ask<Question extends ClientQuestion>(_key: string, question: Question): Promise<AnswerTo<Question>> {
    if (!this.canAnswer(question)) throw new Refused(refusals.clientCannotAnswer(question.kind));
    const { link, correlationId, signal } = this.context;
    if (signal.aborted) throw new ClientUnreachable('aborted');
    if (!link) throw new ClientUnreachable(correlationId === undefined ? 'no-session' : 'no-stream');
    const { method, params } = wireRequest(question, this.dialect);
    const reply = await link.request(method, params, this.timeout);
    const reading = readAnswer(question, 'result' in reply ? reply.result : undefined);
    if (reading.ok) return reading.answer;
    if (
      question.kind === 'form' &&
      question.acceptedAsIs &&
      'result' in reply &&
      isBareAccept(reply.result)
    ) {
      return { action: 'accept', content: {} } satisfies FormAnswer as AnswerTo<Question>;
    }
    if (question.kind === 'form' || question.kind === 'url') {
      return { action: 'cancel' } satisfies FormAnswer as AnswerTo<Question>;
    }
    throw new Refused(refusals.clientUnreachable('no usable answer'));
  }

  /** Each question is a request of its own, so that no answer can serve twice. */
  within(): ClientAsks {
    return this;
  }
}

const isBareAccept = (result: unknown) =>
  member(result, 'action') === 'accept' && member(result, 'content') === undefined;
