import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Agent } from '#agent';
import { type Era, FALLBACK_VERSION, type JsonObject } from '#dispatcher';
import { trustedHeaders } from './request-headers.js';

/** A JSON-RPC message whose outer form has been checked. */
export interface Message {
  /** Empty for a posted response. */
  readonly method: string;
  readonly params: unknown;
  /** As sent, of any JSON type; `undefined` when the message has none. */
  readonly id: unknown;
  readonly jsonrpc: unknown;
  readonly isResponse: boolean;
}

const NO_MESSAGE: Message = {
  method: '',
  params: undefined,
  id: undefined,
  jsonrpc: undefined,
  isResponse: false,
};
/** Also what a body becomes once it is parsed: a call may run long, and its bytes are no longer needed. */
export const NO_BODY = Buffer.alloc(0);
const NO_CAPABILITIES: JsonObject = Object.freeze({});

/** The path of a request target, without its query. */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/** One request on its way through the ladder: what is known of it so far. Rungs fill it from top to bottom. */
export class Exchange {
  readonly verb: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;

  body: Buffer = NO_BODY;
  parsed: unknown = undefined;
  message: Message = NO_MESSAGE;

  era: Era = 'legacy';
  version: string = FALLBACK_VERSION;
  clientCapabilities: JsonObject = NO_CAPABILITIES;

  /** Nobody until an authenticator says who. */
  agent: Agent | null = null;
  correlationId: string | undefined = undefined;
  /** The caller's own live session, as against a mere label. */
  sessionId: string | undefined = undefined;

  /** Called when the client goes away before it was answered. */
  onGone: (() => void) | null = null;

  /** Made when somebody asks for the signal: most answers need none. */
  private controller: AbortController | null = null;
  private abortedBecause: string | null = null;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
  ) {
    this.verb = request.method ?? '';
    this.path = pathOf(request.url ?? '');
    this.headers = trustedHeaders(request);
    response.on('close', () => {
      if (response.writableFinished) return;
      this.abort('client_disconnect');
      this.onGone?.();
    });
  }

  /** Aborts when the client goes away or the edge closes. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.abortedBecause !== null) this.controller.abort(this.abortedBecause);
    }
    return this.controller.signal;
  }

  abort(reason: string): void {
    if (this.abortedBecause !== null) return;
    this.abortedBecause = reason;
    this.controller?.abort(reason);
  }
}
