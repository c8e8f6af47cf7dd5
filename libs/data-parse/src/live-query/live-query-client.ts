import { inspect } from 'node:util';
import { Observable, type Subscriber } from 'rxjs';
import { SourceRefused, StoreError } from '#data';
import {
  assertHarmless,
  connectFrame,
  type EventOp,
  type LiveQuery,
  readFrame,
  type ServerFrame,
  subscribeFrame,
  unsubscribeFrame,
} from './live-query-frames.js';
import { LIVE_QUERY_BOUNDS, type LiveQueryBounds, type LiveQueryServer } from './live-query-options.js';
import { LiveQuerySocket } from './live-query-socket.js';
import { CircuitBreaker, ReconnectDelay } from './reconnecting.js';

/** Events taken at a time, before other work of the event loop runs. */
const BATCH_SIZE = 100;

/** A bounded queue with one consumer, which never runs inside the call that adds an event. Of too many events the oldest are lost. */
export class EventQueue<T> {
  private readonly events: T[] = [];
  private scheduled = false;
  private stopped = false;

  constructor(
    private readonly size: number,
    private readonly consume: (event: T) => void,
    private readonly onDrop: () => void,
  ) {}

  add(event: T): void {
    if (this.stopped) return;
    if (this.events.length >= this.size) {
      this.onDrop();
      this.events.shift();
    }
    this.events.push(event);
    this.schedule();
  }

  /** Discards the waiting events. */
  stop(): void {
    this.stopped = true;
    this.events.length = 0;
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => this.drain());
  }

  private drain(): void {
    this.scheduled = false;
    for (const event of this.events.splice(0, BATCH_SIZE)) this.consume(event);
    if (this.events.length > 0) this.schedule();
  }
}

type ClientState = 'disconnected' | 'connecting' | 'connected' | 'closed';

/** `subscribed` is emitted again after every reconnection: changes in between are not known. */
export type LiveQueryEvent =
  | { readonly op: 'subscribed' }
  | { readonly op: 'lost' }
  | { readonly op: EventOp; readonly objectId: string };

export interface LiveQueryLog {
  warn(line: string): void;
}

interface Registered {
  readonly query: LiveQuery;
  readonly subscriber: Subscriber<LiveQueryEvent>;
  /** The server accepted the subscription once: it is kept through outages. */
  taken: boolean;
  /** Until the server answers the subscription, or until it is sent again. */
  timer: NodeJS.Timeout | null;
}

type EventFrame = Extract<ServerFrame, { objectId: string }>;

/** Unique in the process, so that a late frame of one connection matches no subscription of another. */
let lastRequestId = 0;

/**
 * A client of Parse LiveQuery. It connects while there are subscriptions, reconnects after every end that it did not request,
 * and then renews every subscription.
 */
export class LiveQueryClient {
  private readonly bounds: LiveQueryBounds;
  private readonly registered = new Map<number, Registered>();
  private readonly breaker: CircuitBreaker;
  private readonly delay: ReconnectDelay;
  private readonly queue: EventQueue<EventFrame>;
  private socket: LiveQuerySocket | null = null;
  private retry: NodeJS.Timeout | null = null;
  /** Until the server answers the connection. */
  private greetingDue: NodeJS.Timeout | null = null;
  private current: ClientState = 'disconnected';
  private lossLogged = false;

  constructor(
    private readonly server: LiveQueryServer,
    private readonly log: LiveQueryLog,
    bounds: Partial<LiveQueryBounds> = {},
  ) {
    this.bounds = { ...LIVE_QUERY_BOUNDS, ...bounds };
    const { circuitFailureThreshold, circuitResetTimeout } = this.bounds;
    this.breaker = new CircuitBreaker(circuitFailureThreshold, circuitResetTimeout * 1000);
    this.delay = new ReconnectDelay(this.bounds.initialReconnectInterval, this.bounds.maxReconnectInterval);
    this.queue = new EventQueue<EventFrame>(
      this.bounds.eventQueueSize,
      ({ requestId, op, objectId }) => this.registered.get(requestId)?.subscriber.next({ op, objectId }),
      () => this.emitToAll({ op: 'lost' }),
    );
  }

  get state(): ClientState {
    return this.current;
  }

  /** Whether the connection receives every row, if the server honours the key. */
  get isAdmin(): boolean {
    return this.server.masterKey !== null;
  }

  /** Cold. Fails with SourceRefused when the server refuses the query or the client was closed. */
  watch(query: LiveQuery): Observable<LiveQueryEvent> {
    return new Observable((subscriber) => {
      if (this.current === 'closed')
        return subscriber.error(new SourceRefused(new Error('the client is closed')));
      assertHarmless(query.where);
      const requestId = (lastRequestId += 1);
      const registered: Registered = { query, subscriber, taken: false, timer: null };
      this.registered.set(requestId, registered);
      if (this.current === 'connected') this.subscribe(requestId, registered);
      else this.connect();
      return () => this.unwatch(requestId);
    });
  }

  /** Closes the client permanently; its subscriptions end. */
  close(): void {
    if (this.current === 'closed') return;
    this.current = 'closed';
    if (this.retry) clearTimeout(this.retry);
    this.queue.stop();
    this.socket?.close();
    this.failAll(new Error('the client was closed'));
  }

  /** The printed form contains no key and no token. */
  [inspect.custom](): string {
    return `LiveQueryClient { state: ${this.current}, admin: ${this.isAdmin}, watching: ${this.registered.size} }`;
  }

  toJSON(): unknown {
    return { state: this.current, admin: this.isAdmin, watching: this.registered.size };
  }

  private unwatch(requestId: number): void {
    if (!this.remove(requestId)) return;
    if (this.current === 'connected') this.socket?.send(unsubscribeFrame(requestId));
    // Without subscriptions no connection is needed.
    if (this.registered.size === 0 && this.current !== 'closed') this.disconnect();
  }

  private remove(requestId: number): Registered | undefined {
    const registered = this.registered.get(requestId);
    if (registered?.timer) clearTimeout(registered.timer);
    this.registered.delete(requestId);
    return registered;
  }

  /** A server that does not answer a subscription does not report its changes: the watcher must use another source. */
  private subscribe(requestId: number, registered: Registered): void {
    this.socket?.send(subscribeFrame(requestId, registered.query));
    if (registered.timer) clearTimeout(registered.timer);
    registered.timer = setTimeout(() => {
      this.log.warn('[LiveQuery] a subscription was not answered');
      this.unwatch(requestId);
      registered.subscriber.error(new SourceRefused(new StoreError('unavailable')));
    }, this.bounds.answerTimeout * 1000).unref();
  }

  private disconnect(): void {
    if (this.greetingDue) clearTimeout(this.greetingDue);
    if (this.retry) clearTimeout(this.retry);
    this.retry = null;
    const { socket } = this;
    this.socket = null;
    this.current = 'disconnected';
    socket?.close();
  }

  private connect(): void {
    if (this.socket || this.retry || this.current === 'closed') return;
    if (!this.breaker.admits()) {
      this.reconnectIn(this.breaker.waiting);
      return;
    }
    this.current = 'connecting';
    const socket: LiveQuerySocket = new LiveQuerySocket(this.server.url, this.bounds, {
      onOpen: () => {
        socket.send(connectFrame(this.server));
        const { answerTimeout } = this.bounds;
        this.greetingDue = setTimeout(() => socket.kill('no answer'), answerTimeout * 1000).unref();
      },
      message: (text) => {
        if (this.socket === socket) this.hear(readFrame(text));
      },
      handleEnd: (reason) => {
        if (this.socket === socket) this.handleEnd(reason);
      },
    });
    this.socket = socket;
  }

  private hear(frame: ServerFrame | null): void {
    if (!frame) return;
    if (frame.op === 'connected') this.handleConnected();
    else if (frame.op === 'error') this.handleRefusal(frame);
    else if (frame.op === 'subscribed') this.handleTaken(frame.requestId);
    else if (frame.op === 'unsubscribed') this.handleServerEnd(frame.requestId);
    else if ('objectId' in frame) this.queue.add(frame);
    else this.registered.get(frame.requestId)?.subscriber.next({ op: 'lost' });
  }

  private handleTaken(requestId: number): void {
    const registered = this.registered.get(requestId);
    if (!registered) return;
    if (registered.timer) clearTimeout(registered.timer);
    registered.timer = null;
    registered.taken = true;
    registered.subscriber.next({ op: 'subscribed' });
  }

  /** The server ended a subscription by itself: it is renewed after a while, which reports the time in between as a gap. */
  private handleServerEnd(requestId: number): void {
    const registered = this.registered.get(requestId);
    if (!registered) return;
    this.log.warn('[LiveQuery] the server ended a subscription; trying again');
    if (registered.timer) clearTimeout(registered.timer);
    registered.timer = setTimeout(() => {
      if (this.current === 'connected') this.subscribe(requestId, registered);
    }, this.bounds.initialReconnectInterval * 1000).unref();
  }

  private handleConnected(): void {
    if (this.greetingDue) clearTimeout(this.greetingDue);
    this.current = 'connected';
    this.breaker.noteSuccess();
    this.delay.reset();
    if (this.lossLogged) this.log.warn('[LiveQuery] connected again');
    this.lossLogged = false;
    for (const [requestId, registered] of this.registered) this.subscribe(requestId, registered);
  }

  private handleRefusal({ requestId, code, error, reconnect }: Extract<ServerFrame, { op: 'error' }>): void {
    const registered = requestId === null ? undefined : this.remove(requestId);
    if (registered) {
      const context = `request_id=${requestId} class=${registered.query.className} ${error} (code: ${code})`;
      registered.subscriber.error(new SourceRefused(new Error(context)));
      return;
    }
    this.log.warn(`[LiveQuery] the server refuses: code ${code}`);
    if (reconnect && this.current === 'connected') {
      this.socket?.kill(`refused with ${code}`);
      return;
    }
    // The server rejects the connection or its renewal: watchers must use another source.
    this.disconnect();
    this.failAll(new Error(`refused for good (code: ${code})`));
  }

  private handleEnd(reason: string): void {
    this.socket = null;
    if (this.greetingDue) clearTimeout(this.greetingDue);
    for (const { timer } of this.registered.values()) if (timer) clearTimeout(timer);
    if (this.current === 'closed') return;
    this.current = 'disconnected';
    this.breaker.noteFailure();
    if (!this.lossLogged) this.log.warn(`[LiveQuery] connection lost (${reason}); trying again`);
    this.lossLogged = true;
    // Subscriptions that are not served yet do not wait: another source may be available.
    this.fail(({ taken }) => !taken, new StoreError('unavailable'));
    if (this.registered.size === 0) return;
    this.reconnectIn(Math.max(this.delay.next(), this.breaker.waiting));
  }

  private reconnectIn(milliseconds: number): void {
    if (this.retry) return;
    this.retry = setTimeout(() => {
      this.retry = null;
      if (this.registered.size > 0) this.connect();
    }, milliseconds).unref();
  }

  private emitToAll(news: LiveQueryEvent): void {
    for (const { subscriber } of this.registered.values()) subscriber.next(news);
  }

  private failAll(cause: Error): void {
    this.fail(() => true, cause);
  }

  private fail(which: (registered: Registered) => boolean, cause: Error): void {
    // A subscriber that receives the error may subscribe again at once; the new subscription must not fail with the old one.
    const failing = [...this.registered].filter(([, registered]) => which(registered));
    for (const [requestId, registered] of failing) {
      this.remove(requestId);
      registered.subscriber.error(new SourceRefused(cause));
    }
  }
}
