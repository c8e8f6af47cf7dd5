import type { RequestOptions } from 'node:http';
import { createRequire } from 'node:module';
import type { ClientOptions, RawData, WebSocket } from 'ws';
import type { LiveQueryBounds } from './live-query-options.js';

export interface SocketEvents {
  readonly onOpen: () => void;
  readonly message: (text: string) => void;
  /** Called once, whatever ended the socket, also when it never opened. @param reason for the log only */
  readonly handleEnd: (reason: string) => void;
}

/** Loaded at the first connection: most installations open none. */
const load = createRequire(import.meta.url);

const HANDSHAKE_TIMEOUT = 10_000;
const MAX_HEADERS = 16_384;

/** One WebSocket that detects a dead peer: a peer that does not answer pings or does not finish a frame. */
export class LiveQuerySocket {
  private readonly socket: WebSocket;
  private readonly pinging: NodeJS.Timeout;
  private pongDue: NodeJS.Timeout | null = null;
  private frameDue: NodeJS.Timeout | null = null;
  private reason: string | null = null;
  private hasEnded = false;

  constructor(
    url: string,
    private readonly bounds: LiveQueryBounds,
    private readonly events: SocketEvents,
  ) {
    const library = load('ws') as typeof import('ws');
    this.socket = new library.WebSocket(url, socketOptions(bounds.maxMessageSize));
    this.socket.on('upgrade', ({ socket }) => socket.on('data', () => this.awaitFrame()));
    this.socket.on('open', () => events.onOpen());
    this.socket.on('message', (data: RawData, isBinary) => {
      this.frameArrived();
      if (!isBinary) events.message((data as Buffer).toString('utf8'));
    });
    this.socket.on('ping', () => this.frameArrived());
    this.socket.on('pong', () => {
      this.frameArrived();
      this.clear('pongDue');
    });
    // The message of an error may repeat the URL; the code is sufficient.
    this.socket.on(
      'error',
      (error: NodeJS.ErrnoException) => (this.reason ??= error.code ?? 'protocol error'),
    );
    this.socket.on('close', (code) => this.end(`closed with ${code}`));
    this.pinging = setInterval(() => this.ping(), bounds.pingInterval * 1000).unref();
  }

  send(text: string): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(text);
  }

  /** Closes the connection and waits no longer than the library does. */
  close(): void {
    this.socket.close(1000);
  }

  kill(reason: string): void {
    this.reason ??= reason;
    this.socket.terminate();
  }

  private ping(): void {
    if (this.socket.readyState !== this.socket.OPEN || this.pongDue) return;
    this.socket.ping();
    this.pongDue = setTimeout(() => this.kill('no pong'), this.bounds.pongTimeout * 1000).unref();
  }

  /** Silence between frames is permitted; a frame that has begun must end. */
  private awaitFrame(): void {
    this.frameDue ??= setTimeout(
      () => this.kill('a frame was not finished'),
      this.bounds.frameReadTimeout * 1000,
    ).unref();
  }

  private frameArrived(): void {
    this.clear('frameDue');
  }

  private clear(timer: 'pongDue' | 'frameDue'): void {
    const set = this[timer];
    if (set) clearTimeout(set);
    this[timer] = null;
  }

  private end(how: string): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    clearInterval(this.pinging);
    this.clear('pongDue');
    this.clear('frameDue');
    this.events.handleEnd(this.reason ?? how);
  }
}

function socketOptions(maxPayload: number): ClientOptions & Pick<RequestOptions, 'maxHeaderSize'> {
  return {
    handshakeTimeout: HANDSHAKE_TIMEOUT,
    maxPayload,
    perMessageDeflate: false,
    followRedirects: false,
    maxHeaderSize: MAX_HEADERS,
    minVersion: 'TLSv1.2',
  };
}
