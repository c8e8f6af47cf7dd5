import { admittedAs, type CallTelemetry, type LogLevel } from '#agent';
import {
  type ClientLink,
  type ClientReply,
  ClientUnreachable,
  type DispatchContext,
  type JsonObject,
} from '#dispatcher';
import { notification } from '../sse/frames.js';
import type { Speech } from '../speech.js';
import type { Call } from '../wire/call.js';
import type { Wire } from '../wire/wire.js';
import { CallVoice } from './call-voice.js';
import type { Carrier } from './carrier.js';

/** An answer alone has no room for progress. */
const ignoreProgress = (): void => undefined;

/** The way back to the client of one call. */
class CallLink implements ClientLink {
  /** @param session the caller's own; without one there is nobody to ask */
  constructor(
    private readonly wire: Wire,
    private readonly call: Call,
    private readonly session: string | undefined,
    private readonly carrier: Carrier | null,
  ) {}

  notify(method: string, params?: JsonObject): void {
    const message = notification(method, params);
    if (this.carrier?.send(message) || this.session === undefined) return;
    void this.wire.listening.deliver(this.session, JSON.stringify(message), this.owner);
  }

  /** Nobody else hears what a call says, nor answers it. */
  private get owner(): string {
    return admittedAs(this.call.agent);
  }

  async request(method: string, params: JsonObject, timeout: number): Promise<ClientReply> {
    const { call, carrier, owner, session } = this;
    if (session === undefined) throw new ClientUnreachable('no-session');
    const onOwnStream = (request: JsonObject) => carrier?.carriesRequests === true && carrier.send(request);
    return this.wire.asks.ask({ owner, session, method, params, timeout, call, onOwnStream });
  }
}

export interface ContextParts {
  readonly wire: Wire;
  readonly call: Call;
  readonly speech: Speech;
  /** The caller's own session. */
  readonly session: string | undefined;
  /** `null`: nothing leaves but the answer. */
  readonly carrier: Carrier | null;
  readonly setLogLevel: ((level: LogLevel) => Promise<void>) | undefined;
  readonly parameterHeader: ((name: string) => string | undefined) | undefined;
  readonly telemetry: CallTelemetry | undefined;
}

/** What the kernel is told of a call. */
export function dispatchContext(parts: ContextParts): DispatchContext {
  const { wire, call, speech, session, carrier, setLogLevel, parameterHeader, telemetry } = parts;
  const { agent, label, message } = call;
  // What the application chose for its caller wins over what the client sent.
  const correlationId = agent.correlationId ?? label;
  const voice = carrier && new CallVoice(carrier, message.params, speech);
  return {
    agent,
    era: speech.era,
    version: speech.version,
    clientCapabilities: speech.clientCapabilities,
    // An own getter: most answers never ask for the signal, and a copy of this context still has it.
    get signal() {
      return call.signal;
    },
    progress: voice ? (update) => voice.progress(update) : ignoreProgress,
    ...(voice && { log: (entry) => voice.log(entry) }),
    ...(carrier?.endStream && { endStream: carrier.endStream }),
    ...((carrier !== null || session !== undefined) && { link: new CallLink(wire, call, session, carrier) }),
    ...(correlationId !== undefined && { correlationId }),
    ...(session !== undefined && { sessionId: session }),
    ...(message.id !== undefined && { requestId: message.id }),
    ...(setLogLevel && { setLogLevel }),
    ...(parameterHeader && { parameterHeader }),
    ...(telemetry && { telemetry }),
    ...(telemetry?.meter && { meter: telemetry.meter }),
    ...(telemetry?.trace && { trace: telemetry.trace }),
  };
}
