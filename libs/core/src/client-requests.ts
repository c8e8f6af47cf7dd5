import { IntrinsicException } from '@nestjs/common';
import { Refused } from './refusal.js';
import { clientCannotAnswer } from './refusals/index.js';

type Members = Readonly<Record<string, unknown>>;

/** Form elicitation: a flat form with text, number, yes/no and choice fields. */
export interface FormQuestion {
  readonly kind: 'form';
  readonly message: string;
  /** JSON Schema of the submitted form, of type object. */
  readonly schema: Members;
  /** Sent as `_meta` with the message, for hosts that show more than text. */
  readonly meta?: Members;
}

/** URL elicitation: the user opens a page. The answer does not say whether they finished there. */
interface UrlQuestion {
  readonly kind: 'url';
  readonly message: string;
  readonly url: string;
}

/** Sampling: text from the client's model. */
interface SamplingQuestion {
  readonly kind: 'sampling';
  /** Of `sampling/createMessage`. */
  readonly params: Members;
}

/** Roots: the folders that the client works in. */
interface RootsQuestion {
  readonly kind: 'roots';
}

/** A request from a running call to its client. */
export type ClientQuestion = FormQuestion | UrlQuestion | SamplingQuestion | RootsQuestion;

/** `content` is valid against the schema that was sent. */
export type FormAnswer =
  | { readonly action: 'accept'; readonly content: Members }
  | { readonly action: 'decline' }
  | { readonly action: 'cancel' };

interface UrlAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
}

/** The result of `sampling/createMessage`. */
type SamplingAnswer = Members & { readonly content: unknown };

interface RootsAnswer {
  readonly roots: readonly (Members & { readonly uri: string })[];
}

export type ClientAnswerTo<Question extends ClientQuestion> = Question extends FormQuestion
  ? FormAnswer
  : Question extends UrlQuestion
    ? UrlAnswer
    : Question extends SamplingQuestion
      ? SamplingAnswer
      : RootsAnswer;

export interface AskOptions {
  /**
   * The answer is a decision that only one run may use, on any replica. Default: any run may use it. `holdsFor` identifies what was
   * decided upon; if it differs from what it was then, `ApprovedCallChanged` is thrown. An answer that does not fit counts as
   * cancelled, and the question is not sent again.
   */
  readonly once?: { readonly holdsFor: string };
  /** Aborted when the answer is no longer needed: the request to the client is cancelled, and `ClientUnreachable` is thrown. */
  readonly withdrawn?: AbortSignal;
}

/** Sends requests to the client of a running call, in every supported protocol version. */
export interface ClientRequests {
  /** Whether the client declared the capability for the request. */
  canAnswer(question: ClientQuestion): boolean;
  /**
   * Sends the request and resolves with the answer. In the stateless protocol the call returns its requests and runs again
   * from the start, so code before this must have no effects; concurrent requests (`Promise.all`) are sent together.
   * @param key identifies the request within the call: the same in every run
   * @throws a protocol error when the client cannot be reached or does not answer; handlers must not catch it
   */
  ask<Question extends ClientQuestion>(
    key: string,
    question: Question,
    options?: AskOptions,
  ): Promise<ClientAnswerTo<Question>>;
  /** For nested calls: a decision of a nested call never counts for the outer one. */
  within(): ClientRequests;
  /**
   * Ends the run with "not yet, call again", when the protocol has such a response. Throws; handlers must not catch it.
   * Absent when a call can wait.
   */
  postpone?(): never;
  /**
   * Stores approvals that came from elsewhere for later runs of the call, which would otherwise need them again. Absent when
   * a call runs once, and for nested calls.
   */
  readonly granted?: EarlierApprovals;
}

/** The approvals of a call from its earlier runs. */
export interface EarlierApprovals {
  keep(key: string, holdsFor: string, by: string): void;
  /** Who approved the same thing in an earlier run; may be used once. @throws a protocol error */
  recall(key: string, holdsFor: string): Promise<string | undefined>;
}

/** The part of `ClientRequests` that tools and prompts receive. */
export interface AskingCall {
  canAsk(question: ClientQuestion): boolean;
  /** As `ClientRequests.ask`. The timeout of the tool is suspended until the client answers. */
  ask<Question extends ClientQuestion>(key: string, question: Question): Promise<ClientAnswerTo<Question>>;
}

/** The call has changed since its approval, which no longer applies. */
export class ApprovedCallChanged extends Error {
  override readonly name = 'ApprovedCallChanged';
  constructor() {
    super('what was decided upon has changed since');
  }
}

/** Runs work while the timeout of the caller is suspended. */
export type Suspended = <T>(work: () => Promise<T>) => Promise<T>;

/** The client requests of a handler. Without `asks` every request is refused. */
export function createAskingCall(
  clientRequests: ClientRequests | undefined,
  suspended: Suspended = (work) => work(),
): AskingCall {
  return {
    canAsk: (question) => clientRequests?.canAnswer(question) ?? false,
    ask: (key, question) => {
      if (!clientRequests) return Promise.reject(new Refused(clientCannotAnswer(question.kind)));
      return suspended(() => clientRequests.ask(key, question));
    },
  };
}

/** Why a client request failed. Only the caller of the request receives the reason. */
export type UnreachableReason =
  'no-session' | 'no-stream' | 'not-delivered' | 'timed-out' | 'aborted' | 'withdrawn';

/** A client request received no reply. */
export class ClientUnreachable extends IntrinsicException {
  constructor(
    /** Why the request failed. */
    readonly reason: UnreachableReason,
  ) {
    super(`the client could not be asked: ${reason}`);
    this.name = 'ClientUnreachable';
  }
}

/** The reply of a client: a result or an error. */
export type ClientReply = { readonly result: unknown } | { readonly error: unknown };

/**
 * The channel to the client while its call runs. The transport provides it; a transport without such a channel provides
 * none.
 */
export interface ClientLink {
  /** Sends a notification beside the answer. It is dropped when no stream is open at that moment; never throws. */
  notify(method: string, params?: Members): void;
  /**
   * Sends a JSON-RPC request, on the stream of this call or else on the session's listening stream, and waits for the reply,
   * which may arrive at another replica. Revisions with sessions only: the stateless one asks by its result.
   * @param timeout milliseconds. @param withdrawn when it aborts, the client gets `notifications/cancelled`
   * @throws ClientUnreachable; the wait ends at once when the call is cancelled, the stream closes or the session ends
   */
  request(method: string, params: Members, timeout: number, withdrawn?: AbortSignal): Promise<ClientReply>;
}
