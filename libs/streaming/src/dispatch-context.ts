import { randomUUID } from 'node:crypto';
import {
  callerKey,
  type CallTelemetry,
  isLogLevel,
  LOG_LEVELS,
  type LogEntry,
  type LogLevel,
  type ProgressUpdate,
  readProgress,
} from '#core';
import {
  type ClientLink,
  type ClientReply,
  ClientUnreachable,
  type DispatchContext,
  type JsonObject,
  type KernelReply,
  LOG_LEVEL_KEY,
  member,
  RPC,
  StreamedResult,
} from '#dispatcher';
import type { MessageEnding, ReceivedMessage } from '#telemetry';
import type { ProtocolSession, CheckedMessage } from './message.js';
import type { Call } from './sessions/cancellation.js';
import type { Wire } from './sessions/wire.js';
import { notification } from './sse/event-stream.js';
import { type ResponseStream, progressTokenOf } from './sse/response-stream.js';

/** The minimum level of log messages where a session has set none. */
const DEFAULT_LEVEL: LogLevel = 'info';
/** Revisions from which log messages are sent, and progress only when requested. */
const ADDITIONS = '2025-11-25';
/** Revisions from which the progress of a token must increase. */
const RISING = '2025-03-26';

const rank = (level: LogLevel) => LOG_LEVELS.indexOf(level);

function tokenOf(params: unknown, version: string): unknown {
  return progressTokenOf(params) ?? (version < ADDITIONS ? randomUUID() : undefined);
}

function wantedLevel(params: unknown, { era, version, logLevel }: ProtocolSession): LogLevel | null {
  if (era === 'legacy') return version < ADDITIONS ? null : (logLevel ?? DEFAULT_LEVEL);
  const asked = member(member(params, '_meta'), LOG_LEVEL_KEY);
  return isLogLevel(asked) ? asked : null;
}

/** Sends progress and log messages of a running call. */
class ProgressReporter {
  private readonly token: unknown;
  private readonly level: LogLevel | null;
  private readonly rising: boolean;
  private last = -Infinity;

  constructor(
    private readonly responseStream: ResponseStream,
    params: unknown,
    protocol: ProtocolSession,
  ) {
    this.token = tokenOf(params, protocol.version);
    this.level = wantedLevel(params, protocol);
    this.rising = protocol.version >= RISING;
  }

  /** A report without a finite `progress` is ignored. */
  progress(update: ProgressUpdate): void {
    const report = readProgress(update);
    if (!report || this.token === undefined || (this.rising && report.progress <= this.last)) return;
    this.last = report.progress;
    this.responseStream.send(
      notification('notifications/progress', { progressToken: this.token, ...report }),
    );
  }

  log({ level, data, logger }: LogEntry): void {
    if (this.level === null || rank(level) < rank(this.level)) return;
    const params: JsonObject = { level, ...(logger !== undefined && { logger }), data };
    this.responseStream.send(notification('notifications/message', params));
  }
}

/** The outcome of a message that the kernel did not answer. */
export const FAILED: MessageEnding = Object.freeze({ outcome: 'error', code: RPC.internalError });

/** A message as telemetry records it. @param session the caller's own */
export function measuredMessage(
  { message, label }: Pick<Call, 'message' | 'label'>,
  { era, version, edge: { kernel } }: Pick<CheckedMessage, 'era' | 'version' | 'edge'>,
  session: string | undefined,
): ReceivedMessage {
  const { method, params, id } = message;
  const served = kernel.serves(method, era, version);
  return { method, served, params, id, era, version, session, correlationId: label };
}

export function endingOf(reply: KernelReply): MessageEnding {
  if (reply instanceof StreamedResult || 'accepted' in reply) return { outcome: 'ok' };
  if ('error' in reply) return { outcome: 'error', code: reply.error.code };
  return { outcome: reply.result['isError'] === true ? 'tool_error' : 'ok' };
}

/** A single JSON answer cannot carry progress. */
const ignoreProgress = (): void => undefined;

/** The connection from one call to its client. */
class CallLink implements ClientLink {
  /** @param session the caller's own; without one no client can be reached */
  constructor(
    private readonly wire: Wire,
    private readonly call: Call,
    private readonly session: string | undefined,
    private readonly responseStream: ResponseStream | null,
  ) {}

  notify(method: string, params?: JsonObject): void {
    const message = notification(method, params);
    if (this.responseStream?.send(message) || this.session === undefined) return;
    void this.wire.listening.deliver(this.session, JSON.stringify(message), this.owner);
  }

  /** Only this owner receives messages of the call, and answers its requests. */
  private get owner(): string {
    return callerKey(this.call.agent);
  }

  async request(method: string, params: JsonObject, timeout: number): Promise<ClientReply> {
    const { call, responseStream, owner, session } = this;
    if (session === undefined) throw new ClientUnreachable('no-session');
    const onOwnStream = (request: JsonObject) =>
      responseStream?.carriesRequests === true && responseStream.send(request);
    return this.wire.clientRequests.ask({ owner, session, method, params, timeout, call, onOwnStream });
  }
}

export interface DispatchContextOptions {
  readonly wire: Wire;
  readonly call: Call;
  readonly protocol: ProtocolSession;
  /** The caller's own session. */
  readonly session: string | undefined;
  /** `null`: only the answer can be sent. */
  readonly responseStream: ResponseStream | null;
  readonly setLogLevel: ((level: LogLevel) => Promise<void>) | undefined;
  readonly parameterHeader: ((name: string) => string | undefined) | undefined;
  readonly telemetry: CallTelemetry | undefined;
}

/** The context that the kernel gets for a call. */
export function dispatchContext(dependencies: DispatchContextOptions): DispatchContext {
  const { wire, call, protocol, session, responseStream, setLogLevel, parameterHeader, telemetry } =
    dependencies;
  const { agent, label, message } = call;
  // Values that the application set for its caller take precedence over those of the client.
  const correlationId = agent.correlationId ?? label;
  const reporter = responseStream && new ProgressReporter(responseStream, message.params, protocol);
  return {
    agent,
    era: protocol.era,
    version: protocol.version,
    clientCapabilities: protocol.clientCapabilities,
    // A getter of the object itself: most answers never read the signal, and a copy of this context still has it.
    get signal() {
      return call.signal;
    },
    progress: reporter ? (update) => reporter.progress(update) : ignoreProgress,
    ...(reporter && { log: (entry) => reporter.log(entry) }),
    ...(responseStream?.endStream && { endStream: responseStream.endStream }),
    ...((responseStream !== null || session !== undefined) && {
      link: new CallLink(wire, call, session, responseStream),
    }),
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
