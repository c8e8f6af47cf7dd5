import { type ClientLink, type ClientReply, ClientUnreachable } from '@parley/server';

/** What a running call asked of whoever sits at the client. */
export interface Question {
  /** `elicitation/create`, `sampling/createMessage` or `roots/list`. */
  readonly method: string;
  /** As a client receives them. */
  readonly params: Readonly<Record<string, unknown>>;
}

type Reaction = ClientReply | 'silence';

/** Whoever sits at the client of a caller, as the test says. Nobody does unless the next question has an answer. */
export class ScriptedPerson implements ClientLink {
  private readonly script: Reaction[] = [];
  private readonly asked: Question[] = [];

  /** In the order they were asked. */
  get questions(): readonly Question[] {
    return this.asked;
  }

  /** Answers that no question has met yet. */
  get waiting(): number {
    return this.script.length;
  }

  /** What the client declares with its next call. */
  get capabilities(): Record<string, unknown> {
    if (this.script.length === 0) return {};
    return { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
  }

  next(reaction: Reaction): void {
    this.script.push(reaction);
  }

  leave(): void {
    this.script.length = 0;
  }

  notify(): void {}

  /** A question beyond the script reaches nobody. */
  request(method: string, params: Readonly<Record<string, unknown>>): Promise<ClientReply> {
    this.asked.push({ method, params: JSON.parse(JSON.stringify(params)) as Question['params'] });
    const reaction = this.script.shift();
    if (reaction === undefined) return Promise.reject(new ClientUnreachable('not-delivered'));
    // The time limit is reported and not waited for.
    if (reaction === 'silence') return Promise.reject(new ClientUnreachable('timed-out'));
    return Promise.resolve(reaction);
  }
}
