import { Subject } from 'rxjs';
import { Agent, type AgentOptions } from '#core';
import { type OpenedStream, type SessionNotice, SessionStreams } from '#state';

/** Listening streams of replicas in one process, which record what each client was sent. */
export class SmallStreams {
  private readonly open = new Map<string, number>();
  readonly sent: { readonly session: string; readonly notice: SessionNotice }[] = [];
  private readonly ends: {
    readonly opened: Subject<OpenedStream>;
    readonly left: Subject<string>;
    readonly returning: Subject<string>;
  }[] = [];

  /** The streams as one replica sees them. */
  replica(): SessionStreams {
    const end = {
      opened: new Subject<OpenedStream>(),
      left: new Subject<string>(),
      returning: new Subject<string>(),
    };
    this.ends.push(end);
    const notify = (session: string, notice: SessionNotice): Promise<boolean> => {
      if (!this.open.has(session)) return Promise.resolve(false);
      this.sent.push({ session, notice });
      return Promise.resolve(true);
    };
    return Object.assign(Object.create(SessionStreams.prototype) as SessionStreams, { ...end, notify });
  }

  /** A client opens its stream at a replica. */
  listen(session: string, agent: AgentOptions, at = 0): void {
    this.open.set(session, at);
    this.ends[at]?.opened.next({ session, agent: new Agent(agent) });
  }

  /** A replica ends the stream and expects its client to reconnect. */
  sendBack(session: string, at = 0): void {
    this.open.delete(session);
    this.ends[at]?.returning.next(session);
  }

  hangUp(session: string): void {
    this.open.delete(session);
    for (const { left } of this.ends) left.next(session);
  }

  listUpdates(session: string): unknown[] {
    return this.sent.filter((one) => one.session === session).map(({ notice }) => notice.params?.['uri']);
  }
}
