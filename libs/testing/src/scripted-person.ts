import { type ClientLink, type ClientReply, ClientUnreachable } from '@parley/server';

/** A client request of a running call. */
export interface Question {
  /** `elicitation/create`, `sampling/createMessage` or `roots/list`. */
  readonly method: string;
  /** The parameters that a client receives. */
  readonly params: Readonly<Record<string, unknown>>;
}

type Reaction = ClientReply | 'silence';

/** The scripted user at the client of a caller. Without a scripted answer the client supports no client requests. */
export class ScriptedPerson implements ClientLink {
  private readonly script: Reaction[] = [];
  private readonly requested: Question[] = [];

  /** In the order of the requests. */
  get questions(): readonly Question[] {
    return this.requested;
  }

  /** Scripted answers that no client request has used. */
  get waiting(): number {
    return this.script.length;
  }

  /** The capabilities that the client declares with its next call. */
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

  /** A request without a scripted answer is unreachable. */
  request(method: string, params: Readonly<Record<string, unknown>>): Promise<ClientReply> {
    this.requested.push({ method, params: JSON.parse(JSON.stringify(params)) as Question['params'] });
    const reaction = this.script.shift();
    if (reaction === undefined) return Promise.reject(new ClientUnreachable('not-delivered'));
    // The timeout is reported without waiting for it.
    if (reaction === 'silence') return Promise.reject(new ClientUnreachable('timed-out'));
    return Promise.resolve(reaction);
  }
}
