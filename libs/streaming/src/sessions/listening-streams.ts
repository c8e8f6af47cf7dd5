import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { filter, map, merge, NEVER, type Observable, Subject } from 'rxjs';
import { callerKey, type Agent } from '#core';
import { type OpenedStream, type SessionNotice, SessionStreams, SharedState } from '#state';
import { ListChanges, type ListKind } from '#dispatcher';
import { notification } from '../sse/event-stream.js';
import { ReplicaSignals, text } from './replica-signals.js';

/** Milliseconds in which another replica has to confirm a delivery. */
const DELIVERY_TIMEOUT = 500;

/** A listening stream as its registry uses it. */
export interface Listener {
  /** @returns false when it did not accept the message */
  deliver(json: string): boolean;
  end(): void;
  /** It was ended on this side, and its client will come back. */
  readonly sentBack?: boolean;
}

interface Attached {
  readonly listener: Listener;
  /** For whom it was opened. */
  readonly agent: Agent;
}

/** The listening streams of this process, and the connection to those of other replicas. */
@Injectable()
export class ListeningStreams extends SessionStreams {
  private readonly streams = new Map<string, Attached>();
  /** Messages sent to another replica, by their id, until it confirms the delivery. */
  private readonly underWay = new Map<string, () => void>();
  private readonly opening = new Subject<OpenedStream>();
  private readonly leaving = new Subject<string>();
  private readonly sentBack = new Subject<string>();

  readonly opened: Observable<OpenedStream> = this.opening.asObservable();
  readonly left: Observable<string> = this.leaving.asObservable();
  readonly returning: Observable<string> = this.sentBack.asObservable();

  /** No other replica can have the stream of a session, so no message is published. */
  private readonly alone: boolean;

  constructor(
    private readonly signals: ReplicaSignals,
    @Inject(SharedState) { reach }: Pick<SharedState, 'reach'>,
  ) {
    super();
    this.alone = reach === 'process';
    this.onSignal('attached', (session) => this.detachQuietly(session));
    this.onSignal('left', (session) => {
      // The stream attached here since: then the session still has a stream.
      if (!this.streams.has(session)) this.leaving.next(session);
    });
    signals.listenTo('notice').subscribe((message) => {
      const [session, json, id] = [text(message, 'session'), text(message, 'json'), text(message, 'id')];
      if (session && json && id && this.deliverHere(session, json, text(message, 'owner')))
        void signals.publish('taken', { id });
    });
    // Subscribed from the start: a subscription created for each message would be later than its answer.
    signals.listenTo('taken').subscribe((message) => this.underWay.get(text(message, 'id') ?? '')?.());
  }

  /** Replaces an older stream of the session on any replica, and ends it. */
  attach(session: string, agent: Agent, stream: Listener): void {
    const older = this.streams.get(session);
    this.streams.set(session, { listener: stream, agent });
    older?.listener.end();
    void this.signals.publish('attached', { session });
    this.opening.next({ session, agent });
  }

  /** Does nothing for a stream that was replaced: its successor stays. */
  detach(session: string, stream: Listener): void {
    if (this.streams.get(session)?.listener !== stream) return;
    this.streams.delete(session);
    if (stream.sentBack) {
      this.sentBack.next(session);
      return;
    }
    this.leaving.next(session);
    void this.signals.publish('left', { session });
  }

  /** Must be called on every replica when a session ends. */
  endSession(session: string): void {
    this.detachQuietly(session);
    this.leaving.next(session);
  }

  has(session: string): boolean {
    return this.streams.has(session);
  }

  /** Sends to the streams of this process that were opened for some agents. */
  deliverWhere(isMeant: (agent: Agent) => boolean, json: string): void {
    for (const { listener, agent } of this.streams.values()) if (isMeant(agent)) listener.deliver(json);
  }

  async notify(session: string, { method, params }: SessionNotice): Promise<boolean> {
    if (typeof method !== 'string' || method === '') throw new TypeError('method: expected a text');
    return this.deliver(session, JSON.stringify(notification(method, params)));
  }

  /**
   * Sends a message of any kind to a session.
   * @param owner the key under which its listener must have been admitted. Default: any owner of the session
   * @returns whether a stream accepted it
   */
  async deliver(session: string, json: string, owner?: string): Promise<boolean> {
    if (this.streams.has(session)) return this.deliverHere(session, json, owner);
    return this.alone ? false : this.deliverElsewhere(session, json, owner);
  }

  private async deliverElsewhere(session: string, json: string, owner: string | undefined): Promise<boolean> {
    const id = randomUUID();
    const taken = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), DELIVERY_TIMEOUT);
      this.underWay.set(id, () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
    try {
      const notice = { id, session, json, ...(owner !== undefined && { owner }) };
      return (await this.signals.publish('notice', notice)) && (await taken);
    } finally {
      this.underWay.delete(id);
    }
  }

  private deliverHere(session: string, json: string, owner: string | undefined): boolean {
    const attached = this.streams.get(session);
    if (!attached || (owner !== undefined && callerKey(attached.agent) !== owner)) return false;
    return attached.listener.deliver(json);
  }

  private detachQuietly(session: string): void {
    const attached = this.streams.get(session);
    this.streams.delete(session);
    attached?.listener.end();
  }

  private onSignal(kind: 'attached' | 'left', work: (session: string) => void): void {
    this.signals.listenTo(kind).subscribe((message) => {
      const session = text(message, 'session');
      if (session) work(session);
    });
  }
}

/** Lists whose changes are announced. */
export type ChangingList = Extract<ListKind, 'tools' | 'prompts'>;

/** What a client is sent, as JSON. */
export const LIST_NOTICES: Readonly<Record<ChangingList, string>> = {
  tools: JSON.stringify(notification('notifications/tools/list_changed')),
  prompts: JSON.stringify(notification('notifications/prompts/list_changed')),
};

interface ListChange {
  readonly list: ChangingList;
  /** Absent: of every tenant. */
  readonly tenant?: string;
}

const concerns = ({ tenant }: ListChange, agent: Agent | null): boolean =>
  tenant === undefined || tenant === String(agent?.tenantId ?? '');

/** Announces to the clients of every replica that a list has changed: to those of a tenant alone where it is one of its own. */
@Injectable()
export class ReplicatedListChanges extends ListChanges {
  readonly kinds: ReadonlySet<ListKind> = new Set<ChangingList>(['tools', 'prompts']);
  /** Of this replica and of the others. */
  private readonly happened = new Subject<ListChange>();

  constructor(
    private readonly signals: ReplicaSignals,
    private readonly listening: ListeningStreams,
  ) {
    super();
    signals.listenTo('changed').subscribe((message) => {
      const [list, tenant] = [text(message, 'list'), text(message, 'tenant')];
      if (list !== undefined && Object.hasOwn(LIST_NOTICES, list))
        this.publish({ list: list as ChangingList, ...(tenant !== undefined && { tenant }) });
    });
  }

  /** @param agent null: without the changes of single tenants */
  follow(agent: Agent | null): Observable<ChangingList> {
    return this.happened.pipe(
      filter((change) => concerns(change, agent)),
      map(({ list }) => list),
    );
  }

  /**
   * Announces each change from now on: changes during the start are not announced.
   * @param tenants those whose tools changed, and those of nobody else
   */
  announce(changes: Observable<ChangingList>, tenants: Observable<string> = NEVER): void {
    merge(
      changes.pipe(map((list): ListChange => ({ list }))),
      tenants.pipe(map((tenant): ListChange => ({ list: 'tools', tenant }))),
    ).subscribe((change) => {
      this.publish(change);
      void this.signals.publish('changed', { ...change });
    });
  }

  private publish(change: ListChange): void {
    this.happened.next(change);
    this.listening.deliverWhere((agent) => concerns(change, agent), LIST_NOTICES[change.list]);
  }
}
