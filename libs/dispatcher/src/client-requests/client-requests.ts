import { IntrinsicException } from '@nestjs/common';
import {
  type ClientAnswerTo,
  type AskOptions,
  type ClientRequests,
  type ClientQuestion,
  type FormAnswer,
  type EarlierApprovals,
  ApprovedCallChanged,
  ClientUnreachable,
  type McpRequest,
  refuse,
  type JsonObject,
  member,
} from '#core';
import {
  isDeclared,
  readAnswer,
  listRequiredCapabilities,
  wireRequest,
  type WireRequest,
} from './question-wire.js';
import type { KeptAnswer, RequestStateContent, OpenedState } from './request-state.js';
import {
  computeDigest,
  type DeclaringRequest,
  invalidParams,
  ProtocolError,
  readDialect,
  RPC,
} from '../protocol.js';

/**
 * Ends a run whose client requests must be answered first. It is not a failure and is not logged: the kernel converts
 * it into the answer.
 */
export class InputRequired extends IntrinsicException {
  override readonly name = 'InputRequired';
  constructor() {
    super('the client has to answer first');
  }
}

/** Sends client requests over the session's streams and waits for the reply. */
export class LegacyClientRequests implements ClientRequests {
  /** @param timeout milliseconds that a client has for each request */
  constructor(
    private readonly request: McpRequest,
    private readonly timeout: number,
  ) {}

  canAnswer(question: ClientQuestion): boolean {
    return isDeclared(question, this.request);
  }

  /**
   * A reply that does not answer the request counts as cancelled by the user.
   * @throws Refused when the client did not declare the capability. @throws ClientUnreachable
   */
  async ask<Question extends ClientQuestion>(
    _key: string,
    question: Question,
    { withdrawn }: AskOptions = {},
  ): Promise<ClientAnswerTo<Question>> {
    if (!this.canAnswer(question)) throw refuse.clientCannotAnswer(question.kind);
    const { aborted, correlationId, transport } = this.request;
    const { link } = transport;
    if (aborted) throw new ClientUnreachable('aborted');
    if (!link) throw new ClientUnreachable(correlationId === undefined ? 'no-session' : 'no-stream');
    const { method, params } = wireRequest(question, readDialect(this.request));
    const reply = await link.request(method, params, this.timeout, withdrawn);
    const reading = readAnswer(question, 'result' in reply ? reply.result : undefined);
    if (reading.ok) return reading.answer;
    if (question.kind === 'form' || question.kind === 'url') {
      return { action: 'cancel' } satisfies FormAnswer as ClientAnswerTo<Question>;
    }
    throw refuse.clientUnreachable('no usable answer');
  }

  /** Each question is a separate request, so no answer is used twice. */
  within(): ClientRequests {
    return this;
  }
}

/** Returns `false` when the decision was used before, on any replica. */
export type UseOnce = (name: string) => Promise<boolean>;

export interface InputRoundOptions {
  /** The opened state that the client returned. Without it no answer counts. */
  readonly state: OpenedState | undefined;
  readonly responses: JsonObject;
  readonly request: DeclaringRequest;
  readonly useOnce: UseOnce;
  /**
   * Whether a decision that was used before is asked for again: a run of a task that another worker begins again repeats it, and no
   * client. Default false: it is refused.
   */
  readonly asksAgain?: boolean;
}

export const INVALID_REQUEST_STATE = 'Invalid or expired requestState';

/** One run of a call in the stateless era: it replays earlier answers and collects open client requests. */
export class InputRound implements EarlierApprovals {
  private readonly open = new Map<string, { readonly request: WireRequest; readonly digest: string }>();
  private readonly answered = new Map<string, KeptAnswer>();
  private readonly nested = new Map<string, number>();
  private postponed = false;
  private missing: ProtocolError | undefined;

  constructor(private readonly dependencies: InputRoundOptions) {}

  /** Whether the client must answer requests before the call completes. */
  get isOpen(): boolean {
    return this.postponed || this.open.size > 0;
  }

  /** @throws ProtocolError when another request of the round can never be answered */
  requests(): Readonly<Record<string, WireRequest>> {
    if (this.missing) throw this.missing;
    return Object.fromEntries([...this.open].map(([key, { request }]) => [key, request]));
  }

  /** The answers for the state of the next round. */
  get soFar(): RequestStateContent {
    const { state } = this.dependencies;
    return {
      asked: Object.fromEntries([...this.open].map(([key, { digest }]) => [key, digest])),
      answers: Object.fromEntries([...this.listUnreached(), ...this.answered]),
      round: (state?.round ?? 0) + 1,
    };
  }

  canAnswer(question: ClientQuestion): boolean {
    return isDeclared(question, this.dependencies.request);
  }

  async ask<Question extends ClientQuestion>(
    key: string,
    question: Question,
    { once }: AskOptions,
  ): Promise<ClientAnswerTo<Question>> {
    const request = wireRequest(question, readDialect(this.dependencies.request));
    const digest = computeDigest(once ? { holdsFor: once.holdsFor } : request);
    const known = this.answerTo(key, question, digest, once !== undefined);
    if (known === undefined) return this.raise(key, question, request, digest);
    if (once && !(await this.dependencies.useOnce(`${this.dependencies.state?.jti}:${key}`))) {
      if (this.dependencies.asksAgain) return this.raise(key, question, request, digest);
      throw invalidParams(INVALID_REQUEST_STATE);
    }
    // A decision is stored as a grant by the code that requested it, not as an answer.
    if (!once) this.answered.set(key, { to: digest, answer: known });
    return known;
  }

  keep(key: string, holdsFor: string, by: string): void {
    this.answered.set(key, { to: computeDigest({ holdsFor }), answer: by, once: true });
  }

  /** @throws ProtocolError when the state was used before */
  async recall(key: string, holdsFor: string): Promise<string | undefined> {
    const { state, useOnce } = this.dependencies;
    const kept = state && Object.hasOwn(state.answers, key) ? state.answers[key] : undefined;
    if (kept?.to !== computeDigest({ holdsFor }) || typeof kept.answer !== 'string') return undefined;
    if (!(await useOnce(`${state?.jti}:${key}`))) throw invalidParams(INVALID_REQUEST_STATE);
    this.answered.set(key, kept);
    return kept.answer;
  }

  /** @throws InputRequired */
  postpone(): never {
    this.postponed = true;
    throw new InputRequired();
  }

  /** The same question in two runs of one call counts as two questions. */
  ordinal(key: string): number {
    const next = (this.nested.get(key) ?? 0) + 1;
    this.nested.set(key, next);
    return next;
  }

  /**
   * Answers to questions that this run did not come to, because it has to wait for an earlier one. No decision is taken from here: each
   * is for the run that it was given to.
   */
  private listUnreached(): readonly (readonly [key: string, kept: KeptAnswer])[] {
    const { state, responses } = this.dependencies;
    if (!state) return [];
    const given = Object.entries(state.asked).map(
      ([key, to]) => [key, { to, answer: member(responses, key) }] as const,
    );
    return [...Object.entries(state.answers).filter(([, { once }]) => !once), ...given].filter(
      ([key, { answer }]) => answer !== undefined && !this.open.has(key),
    );
  }

  /** @throws ProtocolError for a malformed answer; content that does not fit is requested again, unless it was to be a decision */
  private answerTo<Question extends ClientQuestion>(
    key: string,
    question: Question,
    digest: string,
    decision: boolean,
  ): ClientAnswerTo<Question> | undefined {
    const { state, responses } = this.dependencies;
    if (!state) return undefined;
    const recorded = !decision && Object.hasOwn(state.answers, key) ? state.answers[key] : undefined;
    const given = member(responses, key);
    const to = recorded?.to ?? member(state.asked, key);
    if (to !== undefined && to !== digest) {
      if (decision) throw new ApprovedCallChanged();
      return undefined;
    }
    const sent = recorded ? recorded.answer : to === undefined ? undefined : given;
    if (sent === undefined) return undefined;
    const reading = readAnswer(question, sent);
    if (reading.ok) return reading.answer;
    if (reading.fault === 'malformed') throw invalidParams(`Invalid input response: ${key}`);
    // Whoever decides is asked once. An accepted form without the decision is none.
    return decision ? ({ action: 'cancel' } satisfies FormAnswer as ClientAnswerTo<Question>) : undefined;
  }

  private raise(key: string, question: ClientQuestion, request: WireRequest, digest: string): never {
    if (!this.canAnswer(question)) {
      const data = { requiredCapabilities: listRequiredCapabilities(question) };
      this.missing ??= new ProtocolError(
        RPC.missingCapability,
        'Missing required client capability',
        data,
        400,
      );
      throw this.missing;
    }
    this.open.set(key, { request, digest });
    throw new InputRequired();
  }
}

export interface ClientRequestsOptions {
  /** Whether the requests belong to a nested call. Default false. */
  readonly nested?: boolean;
  /** Whether the call can be answered with a further client request. Default false. */
  readonly postpones?: boolean;
}

/** The client requests of a call in a round; a nested call uses `within`. */
export class ModernClientRequests implements ClientRequests {
  readonly granted?: EarlierApprovals;
  readonly postpone?: () => never;

  constructor(
    private readonly round: InputRound,
    private readonly options: ClientRequestsOptions = {},
  ) {
    if (!options.nested) this.granted = round;
    if (options.postpones) this.postpone = () => round.postpone();
  }

  canAnswer(question: ClientQuestion): boolean {
    return this.round.canAnswer(question);
  }

  /**
   * @throws InputRequired when the client must answer first. @throws ProtocolError -32021, -32602. @throws
   * ApprovedCallChanged
   */
  ask<Question extends ClientQuestion>(
    key: string,
    question: Question,
    options: AskOptions = {},
  ): Promise<ClientAnswerTo<Question>> {
    if (!options.once || !this.options.nested) return this.round.ask(key, question, options);
    const own = `${key}.${computeDigest(options.once.holdsFor).slice(0, 12)}`;
    return this.round.ask(`${own}.${this.round.ordinal(own)}`, question, options);
  }

  within(): ClientRequests {
    return this.options.nested
      ? this
      : new ModernClientRequests(this.round, { ...this.options, nested: true });
  }
}
