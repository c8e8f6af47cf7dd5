import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { remoteNetwork } from '#auth';
import { ROUTE_BUSY } from './refusals.js';

/**
 * What clients can make this process hold in memory, and the limits of it: bodies of requests that are not answered yet, and
 * answers that are not read yet.
 */

const MIB = 1024 * 1024;

/** Maximum bytes of bodies of one caller, and of all, that are read or processed at once. */
export interface BodyLimits {
  readonly perCaller: number;
  readonly total: number;
}

const DEFAULT_BODY_LIMITS: BodyLimits = { perCaller: 16 * MIB, total: 64 * MIB };

/** The bytes that one request holds. */
export interface HeldBody {
  /** @returns false when there is no space for that many more bytes */
  grow(bytes: number): boolean;
  /** From now on the bytes count for this principal. @returns false when its other requests hold too many */
  own(principal: string): boolean;
  /** Must be called when the request is finished. A second call does nothing. */
  release(): void;
}

/**
 * Bodies of requests that are not answered yet, those that still arrive included. No caller is authenticated before a body is
 * read, so until then they are counted for remote addresses: behind a proxy all callers have the same one.
 */
export class PendingBodies {
  private readonly held = new Map<string, number>();
  private total = 0;

  constructor(private readonly limits: BodyLimits = DEFAULT_BODY_LIMITS) {}

  begin(address: string): HeldBody {
    let caller = `address:${address}`;
    let own = 0;
    return {
      grow: (bytes) => {
        if (!this.hasRoom(caller, bytes) || this.total + bytes > this.limits.total) return false;
        own += bytes;
        this.total += bytes;
        this.add(caller, bytes);
        return true;
      },
      own: (principal) => {
        const owner = `principal:${principal}`;
        if (!this.hasRoom(owner, own)) return false;
        this.add(caller, -own);
        this.add(owner, own);
        caller = owner;
        return true;
      },
      release: () => {
        this.add(caller, -own);
        this.total -= own;
        own = 0;
      },
    };
  }

  private hasRoom(caller: string, bytes: number): boolean {
    return (this.held.get(caller) ?? 0) + bytes <= this.limits.perCaller;
  }

  private add(caller: string, bytes: number): void {
    const left = (this.held.get(caller) ?? 0) + bytes;
    if (left > 0) this.held.set(caller, left);
    else this.held.delete(caller);
  }
}

/** Requests of one connection that wait while an earlier one is answered. */
const MAX_WAITING = 100;

/** `gone`: the connection was closed. `busy`: too many wait already. */
export type SocketTurn = 'now' | 'gone' | 'busy';

/** Per connection, the listeners for its end, for answers that wait behind earlier ones. */
const closing = new WeakMap<Socket, Set<() => void>>();

function findClosing(socket: Socket): Set<() => void> {
  const known = closing.get(socket);
  if (known) return known;
  const listeners = new Set<() => void>();
  closing.set(socket, listeners);
  socket.once('close', () => {
    for (const listener of listeners) listener();
    listeners.clear();
  });
  return listeners;
}

/**
 * Calls the listener once, when the answer has left or can no longer leave. Node emits `close` on an answer only once its turn on the
 * connection has come: one that still waits behind earlier answers ends with the connection.
 */
export function onceClosed(
  { socket }: IncomingMessage,
  response: ServerResponse,
  listener: () => void,
): void {
  if (response.socket !== null) {
    response.once('close', listener);
    return;
  }
  if (socket.destroyed) {
    process.nextTick(listener);
    return;
  }
  const listeners = findClosing(socket);
  listeners.add(listener);
  response.once('socket', () => {
    if (listeners.delete(listener)) response.once('close', listener);
  });
}

/**
 * Requests that a client sends on one connection without waiting for answers. HTTP/1.1 sends the answers in the order of the
 * requests, so that one prepared earlier would only wait in memory: a request is processed once every earlier answer of its
 * connection was passed to the operating system.
 */
class ConnectionTurns {
  /** Requests that wait, by connection. */
  private readonly waiting = new WeakMap<Socket, number>();

  /** Resolves when the answer to the request is the next one of its connection. */
  of({ socket }: IncomingMessage, response: ServerResponse): SocketTurn | Promise<SocketTurn> {
    // Node gives a response its socket when its turn comes.
    if (response.socket !== null) return 'now';
    if (socket.destroyed) return 'gone';
    const waiting = this.waiting.get(socket) ?? 0;
    if (waiting >= MAX_WAITING) return 'busy';
    this.waiting.set(socket, waiting + 1);
    const ended = new Promise<void>((resolve) => {
      const listeners = findClosing(socket);
      const settle = () => {
        listeners.delete(settle);
        this.waiting.set(socket, (this.waiting.get(socket) ?? 1) - 1);
        resolve();
      };
      listeners.add(settle);
      response.once('socket', () => {
        if (listeners.has(settle)) settle();
      });
    });
    // Checked afterwards: a connection that breaks assigns the socket to its next answer before it closes.
    return ended.then(() => (socket.destroyed ? 'gone' : 'now'));
  }
}

export interface UnreadLimits {
  /** Milliseconds without an accepted byte, while bytes wait, after which a connection is closed. Default 30,000. */
  readonly timeout?: number;
  /** Bytes that may wait for the readers of one caller. Default 32 MiB. */
  readonly perCaller?: number;
  /** Bytes that may wait for all readers. Default 128 MiB. */
  readonly total?: number;
}

const DEFAULT_UNREAD_LIMITS: Required<UnreadLimits> = {
  timeout: 30_000,
  perCaller: 32 * MIB,
  total: 128 * MIB,
};

/** What Node keeps of the bytes that wait in its own queue below the stream; only there a part of a large write is seen to leave. */
interface WritingHandle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/** Bytes that left this process, whatever was written since. */
function countTaken(socket: Socket): number {
  const { bytesWritten, writeQueueSize } = (socket as { readonly _handle?: WritingHandle })._handle ?? {};
  if (bytesWritten !== undefined && writeQueueSize !== undefined) return bytesWritten - writeQueueSize;
  return socket.bytesWritten - socket.writableLength;
}

/** The client at the other end of one connection. */
interface Reader {
  readonly socket: Socket;
  /** Bytes that the operating system had accepted at the last check. */
  taken: number;
  /** Milliseconds of the monotonic clock: since then nothing was accepted, or nothing waits. */
  since: number;
  /** The answers of the connection that wait. */
  readonly answers: Set<ServerResponse>;
}

/** A principal, or an address before authentication, and the answers that wait for its readers. */
interface Caller {
  readonly name: string;
  /** Of all its waiting answers. */
  bytes: number;
  /** The answer whose reader has accepted nothing for longest comes first. */
  readonly answers: Set<ServerResponse>;
}

const PRINCIPAL = Symbol('principal');

/** An answer holds its principal itself: each entry of a weak map costs more. One without is counted for the remote address. */
type OwnedAnswer = ServerResponse & { [PRINCIPAL]?: string };

/** A waiting answer as it was counted last. */
interface CountedAnswer {
  readonly caller: Caller;
  readonly reader: Reader;
  bytes: number;
}

/**
 * Answers that their readers have not accepted yet, of every route. A connection whose reader accepts nothing is closed; one
 * that accepts little is not. The bytes that wait for the readers of one caller, and for all, are bounded: beyond the limit
 * the connection that has accepted nothing for longest is closed, of the caller, or of the caller for whom most bytes wait. A
 * single waiting answer is never too large.
 *
 * Each answer is counted again when it is written and when its reader accepts bytes, so the sums are always known: what a
 * write costs does not depend on the number of waiting answers.
 */
export class UnreadAnswers {
  private readonly limits: Required<UnreadLimits>;
  private readonly readers = new Map<Socket, Reader>();
  private readonly callers = new Map<string, Caller>();
  private readonly counted = new Map<ServerResponse, CountedAnswer>();
  /** Answers whose progress is followed. */
  private readonly followed = new WeakSet<ServerResponse>();
  private total = 0;
  /** The order of the requests of each connection. */
  readonly turns = new ConnectionTurns();
  private timer: NodeJS.Timeout | undefined;

  /** @param now milliseconds of a monotonic clock; for tests */
  constructor(
    limits: UnreadLimits = {},
    private readonly now: () => number = () => performance.now(),
  ) {
    this.limits = { ...DEFAULT_UNREAD_LIMITS, ...limits };
  }

  /** Must be called for every request, before it is answered. */
  watch({ socket }: IncomingMessage): void {
    if (this.readers.has(socket) || socket.destroyed) return;
    this.readers.set(socket, { socket, taken: countTaken(socket), since: this.now(), answers: new Set() });
    socket.once('close', () => this.forget(socket));
    this.timer ??= setInterval(() => this.closeIdle(), this.limits.timeout / 6).unref();
  }

  /**
   * Must be called for every request of a route that prepares its answers completely, instead of `watch`: requests of one
   * connection are processed one after another, each when every earlier answer was sent. Refuses a request with 503 when too
   * many wait.
   * @returns whether the request is to be answered
   */
  async admit(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    this.watch(request);
    const turn = await this.turns.of(request, response);
    if (turn === 'busy') {
      const { status, body, headers } = ROUTE_BUSY;
      response.writeHead(status, {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Length': Buffer.byteLength(body),
        ...headers,
      });
      response.end(body);
    }
    return turn === 'now';
  }

  /** From now on the answer is counted for this principal; before, for the remote address. */
  own(response: ServerResponse, principal: string): void {
    (response as OwnedAnswer)[PRINCIPAL] = principal;
    if (this.counted.has(response)) this.count(response);
  }

  /** Must be called for every answer, once it or a part of it was written, and once a part of a stream was accepted. */
  wrote(response: ServerResponse): void {
    const caller = this.count(response);
    if (!caller) return;
    const { perCaller, total } = this.limits;
    // The limit of the caller ends before the last answer, because a single answer may have any size; the common one does not.
    while (caller.answers.size > 1 && caller.bytes > perCaller) this.cut(caller);
    while (this.total > total) this.cut(this.mostWaitedFor());
  }

  /** Closes the connections whose readers accept nothing. */
  closeIdle(): void {
    const now = this.now();
    for (const [socket, reader] of this.readers) {
      const taken = countTaken(socket);
      if (socket.writableLength === 0 || taken !== reader.taken) {
        reader.taken = taken;
        reader.since = now;
        for (const answer of reader.answers) this.moveBehindOthers(answer);
      } else if (now - reader.since >= this.limits.timeout) socket.destroy();
    }
  }

  /** Counts the bytes of an answer that wait now. @returns its caller; `undefined` when none wait */
  private count(response: ServerResponse): Caller | undefined {
    const known = this.counted.get(response);
    // Node takes the socket from a request whose body was refused before its end. The answer still has it.
    const socket = known?.reader.socket ?? response.socket ?? (response.req.socket as Socket | null);
    const reader = socket === null ? undefined : this.readers.get(socket);
    const bytes = response.destroyed || socket === null || socket.destroyed ? 0 : response.writableLength;
    if (!reader || bytes === 0) {
      if (known) this.uncount(response, known);
      return undefined;
    }
    const principal = (response as OwnedAnswer)[PRINCIPAL];
    const name =
      principal === undefined
        ? `address:${remoteNetwork(reader.socket.remoteAddress)}`
        : `principal:${principal}`;
    if (known?.caller.name === name) {
      known.caller.bytes += bytes - known.bytes;
      this.total += bytes - known.bytes;
      known.bytes = bytes;
      return known.caller;
    }
    if (known) this.uncount(response, known);
    // Until now nothing waited for this reader.
    if (reader.answers.size === 0) reader.since = this.now();
    const caller = this.callers.get(name) ?? { name, bytes: 0, answers: new Set() };
    this.callers.set(name, caller);
    caller.bytes += bytes;
    caller.answers.add(response);
    reader.answers.add(response);
    this.total += bytes;
    this.counted.set(response, { caller, reader, bytes });
    if (this.followed.has(response)) return caller;
    this.followed.add(response);
    // Streams report each accepted part by `wrote`; every other answer is written whole, or waits for `drain`.
    const count = () => void this.count(response);
    response.on('drain', count);
    // A sent answer is closed at once.
    onceClosed(response.req, response, count);
    return caller;
  }

  private uncount(response: ServerResponse, { caller, reader, bytes }: CountedAnswer): void {
    this.counted.delete(response);
    reader.answers.delete(response);
    caller.answers.delete(response);
    caller.bytes -= bytes;
    this.total -= bytes;
    if (caller.answers.size === 0) this.callers.delete(caller.name);
  }

  /** Only runs when a connection is about to be closed, so it may read all callers. */
  private mostWaitedFor(): Caller {
    return [...this.callers.values()].reduce((most, caller) => (caller.bytes > most.bytes ? caller : most));
  }

  /** Closes the connection that has accepted nothing for longest. One that has just accepted bytes is only counted again. */
  private cut({ answers }: Caller): void {
    for (const longest of answers) {
      const before = this.counted.get(longest);
      const bytes = before?.bytes;
      this.count(longest);
      if (before && before.bytes === bytes && this.counted.has(longest)) {
        this.uncount(longest, before);
        before.reader.socket.destroy();
      }
      return;
    }
  }

  private moveBehindOthers(answer: ServerResponse): void {
    const caller = this.count(answer);
    if (!caller) return;
    caller.answers.delete(answer);
    caller.answers.add(answer);
  }

  private forget(socket: Socket): void {
    const answers = this.readers.get(socket)?.answers ?? [];
    for (const answer of answers) {
      const known = this.counted.get(answer);
      if (known) this.uncount(answer, known);
    }
    this.readers.delete(socket);
    if (this.readers.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
