type Members = Readonly<Record<string, unknown>>;

/** A form that a person fills in: flat, with text, number, yes/no and choice fields. */
export interface FormQuestion {
  readonly kind: 'form';
  readonly message: string;
  /** JSON Schema of the filled form, of type object. */
  readonly schema: Members;
  /** Sent as `_meta` beside the message, for hosts that show more than text. */
  readonly meta?: Members;
  /** Sessions only: accepting without having filled anything in is an answer. Default false. */
  readonly acceptedAsIs?: boolean;
}

/** A page that a person is asked to open. Whether they finished there is not part of the answer. */
export interface UrlQuestion {
  readonly kind: 'url';
  readonly message: string;
  readonly url: string;
}

/** Text from the client's own model. */
export interface SamplingQuestion {
  readonly kind: 'sampling';
  /** Of `sampling/createMessage`. */
  readonly params: Members;
}

/** The folders that the client works in. */
export interface RootsQuestion {
  readonly kind: 'roots';
}

/** What a running call may ask of the client that made it. */
export type ClientQuestion = FormQuestion | UrlQuestion | SamplingQuestion | RootsQuestion;

/** `content` fits the schema that was sent. */
export type FormAnswer =
  | { readonly action: 'accept'; readonly content: Members }
  | { readonly action: 'decline' }
  | { readonly action: 'cancel' };

export interface UrlAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
}

/** The result of `sampling/createMessage`. */
export type SamplingAnswer = Members & { readonly content: unknown };

export interface RootsAnswer {
  readonly roots: readonly (Members & { readonly uri: string })[];
}

export type AnswerTo<Question extends ClientQuestion> = Question extends FormQuestion
  ? FormAnswer
  : Question extends UrlQuestion
    ? UrlAnswer
    : Question extends SamplingQuestion
      ? SamplingAnswer
      : RootsAnswer;

export interface AskOptions {
  /**
   * The answer is a decision: the first run that gets it uses it up, on whichever replica. Default false. `holdsFor` says
   * what was decided upon; when that is no longer the same, the answer counts for nothing and `QuestionChanged` is thrown.
   */
  readonly once?: { readonly holdsFor: string };
}

/** The way to the client of a running call, whichever protocol it speaks. */
export interface ClientAsks {
  /** Whether the client declared that it can answer such a question. */
  canAnswer(question: ClientQuestion): boolean;
  /**
   * Asks, and goes on with the answer. The stateless era answers the call with its questions and runs it again from the
   * top, so what comes before must have no effects; questions asked at once (`Promise.all`) travel together.
   * @param key names the question within the call: the same in every run
   * @throws an error of the protocol when the client cannot be asked or does not answer; handlers let it pass
   */
  ask<Question extends ClientQuestion>(
    key: string,
    question: Question,
    options?: AskOptions,
  ): Promise<AnswerTo<Question>>;
  /** For what the call runs in turn: its decisions are its own and never those of the call. */
  within(): ClientAsks;
  /**
   * Answers the call with "not yet, ask again", where the protocol has such an answer: throws what the handler lets pass.
   * Absent where a call can wait.
   */
  postpone?(): never;
  /**
   * Keeps what was granted elsewhere while the call goes on asking: it is run again, and would otherwise be held up again.
   * Absent where a call is run once, and for what it runs in turn.
   */
  readonly granted?: GrantsOfCall;
}

/** What was granted to a call in one of its runs. */
export interface GrantsOfCall {
  keep(key: string, holdsFor: string, by: string): void;
  /** By whom it was granted in an earlier run, for the same thing; uses that up. @throws an error of the protocol */
  recall(key: string, holdsFor: string): Promise<string | undefined>;
}

/** What a tool or prompt is given of it. */
export interface AskingCall {
  canAsk(question: ClientQuestion): boolean;
  /** As `ClientAsks.ask`. While a client thinks, the time of the tool stands still. */
  ask<Question extends ClientQuestion>(key: string, question: Question): Promise<AnswerTo<Question>>;
}

/** What was decided upon is no longer what the decision would be applied to. */
export class QuestionChanged extends Error {
  override readonly name = 'QuestionChanged';
  constructor() {
    super('what was decided upon has changed since');
  }
}
