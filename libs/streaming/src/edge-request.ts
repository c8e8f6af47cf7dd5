import { defer, filter, map, merge, type Observable, Subject } from 'rxjs';
import {
  type Agent,
  callerKey,
  type CallTelemetry,
  type CallUpdate,
  type ClientLink,
  type ClientReply,
  ClientUnreachable,
  isLogLevel,
  LazyAbort,
  LOG_LEVELS,
  type LogEntry,
  type LogLevel,
  type ProgressUpdate,
  type RequestTransport,
  type JsonObject,
  member,
} from '#core';
import { type KernelReply, LOG_LEVEL_KEY, RETRY_AFTER_KEY, RPC, StreamedResult } from '#dispatcher';
import type { MessageEnding, ReceivedMessage } from '#telemetry';
import { type CheckedMessage, type Message, type ProtocolSession, toShownId } from './message.js';
import type { PendingClientRequests } from './sessions/client-requests.js';
import type { ListeningStreams } from './sessions/listening-streams.js';
import { notification, readProgressToken, type ResponseStream } from './sse/event-stream.js';

/** What an edge knows about a message besides its caller. */
export interface EdgeRequestOptions {
  /** The ways to the client besides the answer. */
  readonly wire: {
    readonly listening: Pick<ListeningStreams, 'deliver'>;
    readonly clientRequests: Pick<PendingClientRequests, 'ask'>;
  };
  readonly message: Message;
  /** The session it came in, or a mere label that names none. */
  readonly label: string | undefined;
  readonly protocol: ProtocolSession;
  /** The caller's own session. */
  readonly session: string | undefined;
  readonly setLogLevel?: ((level: LogLevel) => Promise<void>) | undefined;
  readonly parameterHeader?: ((name: string) => string | undefined) | undefined;
  /** `X-Request-Id`. Absent where the message came by another way than HTTP. */
  readonly httpRequestId?: string | undefined;
}

/** The transport of a request that an edge received: what it knows of the message, the way back to its client, and the means to abort it. */
export class EdgeRequest extends LazyAbort<string> implements RequestTransport, ClientLink {
  readonly message: Message;
  readonly label: string | undefined;
  readonly correlationId: string | undefined;
  readonly era: ProtocolSession['era'];
  readonly version: string;
  readonly clientCapabilities: JsonObject;
  readonly sessionId: string | undefined;
  readonly requestId: unknown;
  readonly httpRequestId: string | undefined;
  readonly setLogLevel: RequestTransport['setLogLevel'];
  readonly parameterHeader: RequestTransport['parameterHeader'];

  place = -1;
  key: string | null = null;
  /** Set when the message is dispatched; absent where nothing is measured. */
  telemetry: CallTelemetry | undefined;
  /** Set when the answer may be a stream; null: only the answer can be sent. */
  responseStream: ResponseStream | null = null;

  /** Created by the first report. */
  private updates: Subject<CallUpdate> | null = null;
  private unsent: { readonly error: unknown } | null = null;

  constructor(
    readonly agent: Agent,
    private readonly options: EdgeRequestOptions,
  ) {
    super();
    const { message, label, protocol, session } = options;
    this.message = message;
    this.label = label;
    // Values that the application set for its caller take precedence over those of the client.
    this.correlationId = agent.correlationId ?? label;
    this.era = protocol.era;
    this.version = protocol.version;
    this.clientCapabilities = protocol.clientCapabilities;
    this.sessionId = session;
    this.requestId = message.id;
    this.httpRequestId = options.httpRequestId;
    this.setLogLevel = options.setLogLevel;
    this.parameterHeader = options.parameterHeader;
  }

  /** Absent where neither a stream nor a session reaches the client. */
  get link(): ClientLink | undefined {
    return this.responseStream || this.sessionId !== undefined ? this : undefined;
  }

  get progress() {
    return (update: ProgressUpdate): void => this.report({ kind: 'progress', update });
  }

  get log() {
    return this.responseStream ? (entry: LogEntry): void => this.report({ kind: 'log', entry }) : undefined;
  }

  get endStream(): (() => void) | undefined {
    return this.responseStream?.endStream;
  }

  notify(method: string, params?: JsonObject): void {
    const message = notification(method, params);
    if (this.responseStream?.send(message) || this.sessionId === undefined) return;
    void this.options.wire.listening.deliver(this.sessionId, JSON.stringify(message), callerKey(this.agent));
  }

  async request(
    method: string,
    params: JsonObject,
    timeout: number,
    withdrawn?: AbortSignal,
  ): Promise<ClientReply> {
    const { responseStream, sessionId: session } = this;
    if (session === undefined) throw new ClientUnreachable('no-session');
    const onOwnStream = (message: JsonObject) =>
      responseStream?.carriesRequests === true && responseStream.send(message);
    // Only this owner receives messages of the call, and answers its requests.
    const owner = callerKey(this.agent);
    return this.options.wire.clientRequests.ask({
      owner,
      session,
      method,
      params,
      timeout,
      ...(withdrawn && { withdrawn }),
      call: this,
      onOwnStream,
    });
  }

  /** @throws the error of a message that cannot be written, to the tool that reported it */
  private report(update: CallUpdate): void {
    if (!this.responseStream) return;
    this.updates ??= this.openUpdates(this.responseStream);
    this.updates.next(update);
    const { unsent } = this;
    this.unsent = null;
    if (unsent) throw unsent.error;
  }

  private openUpdates(stream: ResponseStream): Subject<CallUpdate> {
    const updates = new Subject<CallUpdate>();
    toNotifications(updates, this.message.params, this.options.protocol).subscribe((message) => {
      try {
        stream.send(message);
      } catch (error) {
        this.unsent = { error };
      }
    });
    return updates;
  }
}

/** The minimum level of log messages where a session has set none. */
const DEFAULT_LEVEL: LogLevel = 'info';
/** Revisions from which log messages are sent, and progress only when requested. */
const ADDITIONS = '2025-11-25';
/** Revisions from which the progress of a token must increase. */
const RISING = '2025-03-26';

const rank = (level: LogLevel) => LOG_LEVELS.indexOf(level);

function readWantedLevel(params: unknown, { era, version, logLevel }: ProtocolSession): LogLevel | null {
  if (era === 'legacy') return version < ADDITIONS ? null : (logLevel ?? DEFAULT_LEVEL);
  const asked = member(member(params, '_meta'), LOG_LEVEL_KEY);
  return isLogLevel(asked) ? asked : null;
}

/** The notifications of a running call: progress under its token, and log messages from the wanted level. */
export function toNotifications(
  updates: Observable<CallUpdate>,
  params: unknown,
  protocol: ProtocolSession,
): Observable<JsonObject> {
  const token = readProgressToken(params);
  const level = readWantedLevel(params, protocol);
  const progress = updates.pipe(
    map((reported) => (reported.kind === 'progress' ? reported.update : null)),
    filter((report) => report !== null && token !== undefined),
    protocol.version >= RISING ? keepRising : (reports) => reports,
    map((report) => notification('notifications/progress', { progressToken: token, ...report })),
  );
  const logs = updates.pipe(
    map((reported) => (reported.kind === 'log' ? reported.entry : null)),
    filter((entry) => entry !== null && level !== null && rank(entry.level) >= rank(level)),
    map((entry) => notification('notifications/message', toMessage(entry as LogEntry))),
  );
  return merge(progress, logs);
}

const toMessage = ({ level, data, logger }: LogEntry): JsonObject => ({
  level,
  ...(logger !== undefined && { logger }),
  data,
});

/** Without the reports that are not above an earlier one. */
function keepRising(reports: Observable<ProgressUpdate | null>): Observable<ProgressUpdate | null> {
  return defer(() => {
    let last = -Infinity;
    return reports.pipe(
      filter((report) => {
        if (report === null || report.progress <= last) return false;
        last = report.progress;
        return true;
      }),
    );
  });
}

/** The outcome of a message that the kernel did not answer. */
export const INTERNAL_ERROR_ENDING: MessageEnding = Object.freeze({
  outcome: 'error',
  code: RPC.internalError,
});

/** What clients of any revision notify a server of. The kernel takes other names too, and they are no methods. */
const NOTIFICATIONS: ReadonlySet<string> = new Set(
  ['initialized', 'cancelled', 'progress', 'roots/list_changed', 'tasks/status'].map(
    (name) => `notifications/${name}`,
  ),
);

/** A message as telemetry records it. @param session the caller's own */
export function toMeasuredMessage(
  { message, label }: Pick<EdgeRequest, 'message' | 'label'>,
  { era, version, edge: { kernel } }: Pick<CheckedMessage, 'era' | 'version' | 'edge'>,
  session: string | undefined,
): ReceivedMessage {
  const { method, params, id } = message;
  const served = kernel.serves(method, era, version) || NOTIFICATIONS.has(method);
  return { method, served, params, id: toShownId(id), era, version, session, correlationId: label };
}

export function findEnding(reply: KernelReply): MessageEnding {
  if (reply instanceof StreamedResult || 'accepted' in reply || 'envelopeTail' in reply)
    return { outcome: 'ok' };
  if ('error' in reply) return { outcome: 'error', code: reply.error.code };
  return { outcome: reply.result['isError'] === true ? 'tool_error' : 'ok' };
}

/** Whether a call was refused with a time to come back. */
export function refusesUntilLater(reply: KernelReply): boolean {
  if (!('result' in reply) || 'envelopeTail' in reply || reply.result['isError'] !== true) return false;
  return member(reply.result['_meta'], RETRY_AFTER_KEY) !== undefined;
}

/** A request in progress that can be aborted from outside. */
export interface RunningCall {
  readonly agent: Agent;
  readonly message: Pick<Message, 'id'>;
  /** The session it came in, or a mere label that names none. */
  readonly label: string | undefined;
  /** Where `RunningRequests` holds it; -1: nowhere. */
  place: number;
  /** Its key for a cancellation; null: it cannot be named. */
  key: string | null;
  abort(reason: string): void;
}

/** The key of a call for its cancellation: its caller, its session and the JSON value of its request id. */
export interface CallName {
  /** As whom the caller was admitted (`callerKey`). */
  readonly owner: string;
  readonly session: string;
  readonly requestId: unknown;
}

function toKey({ owner, session, requestId }: CallName): string {
  return JSON.stringify([owner, session, requestId]);
}

/**
 * The calls that run in this process. They are in an array, which changes in place: a set whose members come and go makes a new
 * table for each few of them, and what V8 keeps of the former tables keeps the calls that ran then.
 */
export class RunningRequests {
  private readonly running: RunningCall[] = [];
  private readonly named = new Map<string, RunningCall>();

  /**
   * Called before the work starts, so that an early cancellation is not missed. A later call with the same key replaces it.
   */
  begin(call: RunningCall): void {
    call.place = this.running.push(call) - 1;
    const { label, message, agent } = call;
    if (label === undefined || message.id === undefined || message.id === null) return;
    call.key = toKey({ owner: callerKey(agent), session: label, requestId: message.id });
    this.named.set(call.key, call);
  }

  end(call: RunningCall): void {
    const { place, key } = call;
    if (key !== null && this.named.get(key) === call) this.named.delete(key);
    if (place < 0) return;
    call.place = -1;
    const last = this.running.pop();
    if (!last || last === call) return;
    // The last one takes its place.
    this.running[place] = last;
    last.place = place;
  }

  /** @returns whether there was such a call */
  cancel(name: CallName, reason: string): boolean {
    const key = toKey(name);
    const call = this.named.get(key);
    if (!call) return false;
    this.named.delete(key);
    call.abort(reason);
    return true;
  }

  /** Ends the calls of some callers that were made in a session, or under an id that names none. */
  endSession(session: string, isMeant: (caller: Agent) => boolean, reason: string): void {
    for (const call of this.now) if (call.label === session && isMeant(call.agent)) call.abort(reason);
  }

  /** Ends every call of a connection that serves one client only. */
  endLabel(label: string, reason: string): void {
    for (const call of this.now) if (call.label === label) call.abort(reason);
  }

  endAll(reason: string): void {
    this.endWhere(() => true, reason);
  }

  endWhere(whose: (agent: Agent) => boolean, reason: string): void {
    for (const call of this.now) if (whose(call.agent)) call.abort(reason);
  }

  /** Those of this moment: an aborted call may end at once. */
  private get now(): readonly RunningCall[] {
    return [...this.running];
  }
}
