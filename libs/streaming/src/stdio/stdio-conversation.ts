import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Writable } from 'node:stream';
import type { Subscription } from 'rxjs';
import { createInnerCredentials, type Authenticator } from '#auth';
import {
  type Agent,
  callerKey,
  type LogLevel,
  McpRequest,
  Refused,
  Unauthorized,
  type JsonObject,
  member,
} from '#core';
import {
  FALLBACK_VERSION,
  faultLine,
  type Kernel,
  type KernelReply,
  readCapabilities,
  StreamedResult,
  type WarningLog,
} from '#dispatcher';
import type { Telemetry } from '#telemetry';
import { BatchAnswers } from '../batch-answers.js';
import { EdgeRequest, findEnding, INTERNAL_ERROR_ENDING, toMeasuredMessage } from '../edge-request.js';
import { envelope, jsonRpc, servedMethod, servedVersion } from '../http/arrival-checks.js';
import { callerRefused, internalError, refusedByKernel, unauthenticated } from '../http/refusals.js';
import {
  type CheckedMessage,
  readClaimedVersion,
  isNotification,
  type Message,
  type Reply,
  resultReply,
} from '../message.js';
import type { Wire } from '../sessions/wire.js';
import { formatJson, notification, type ResponseStream } from '../sse/event-stream.js';

/** The result for a line. */
export type Line = { readonly bytes: Buffer } | 'too-long';

const NEWLINE = 0x0a;
/** Blanks, and the byte order mark that shells write before a text. */
const isBlank = (line: Buffer): boolean => line.length < 1_000 && line.toString('utf8').trim() === '';

/** Splits a stream of bytes into lines, and never buffers more than the limit of a line. */
export class LineReader {
  private parts: Buffer[] = [];
  private size = 0;
  private skipping = false;

  /** @param limit bytes of one line */
  constructor(private readonly limit: number) {}

  /** The lines that are complete with this chunk; blank ones are left out. */
  *take(chunk: Buffer): Iterable<Line> {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(NEWLINE, from);
      if (at < 0) break;
      const line = this.complete(chunk.subarray(from, at));
      if (line) yield line;
      from = at + 1;
    }
    this.keep(chunk.subarray(from));
  }

  /** What the input has ended with instead of a line break. */
  end(): Line | null {
    return this.complete(Buffer.alloc(0));
  }

  private complete(end: Buffer): Line | null {
    this.keep(end);
    const { parts, skipping } = this;
    this.parts = [];
    this.size = 0;
    this.skipping = false;
    if (skipping) return 'too-long';
    const bytes = Buffer.concat(parts);
    return isBlank(bytes) ? null : { bytes };
  }

  private keep(part: Buffer): void {
    this.size += part.length;
    if (this.size > this.limit) {
      this.skipping = true;
      this.parts = [];
    } else if (!this.skipping && part.length > 0) this.parts.push(part);
  }
}

/**
 * Writes one message per line. For a slow reader, messages other than answers are dropped, and its own requests are delayed.
 */
export class StdioLineWriter {
  /** @param maxBuffered bytes that may wait for the reader before messages beside answers are dropped */
  constructor(
    private readonly output: Writable,
    private readonly maxBuffered: number,
  ) {}

  /** An answer: always written. */
  answer(json: string): void {
    if (this.output.writable) this.output.write(`${json}\n`);
  }

  /** @returns false when it was dropped */
  publish(json: string): boolean {
    if (!this.output.writable || this.output.writableLength > this.maxBuffered) return false;
    this.output.write(`${json}\n`);
    return true;
  }

  get isBehind(): boolean {
    return this.output.writableNeedDrain;
  }

  /** Resolves when the reader has caught up or disconnected. */
  caughtUp(): Promise<void> {
    return new Promise((resolve) => {
      const resolveDrained = () => {
        this.output.off('drain', resolveDrained).off('close', resolveDrained).off('error', resolveDrained);
        resolve();
      };
      this.output.on('drain', resolveDrained).on('close', resolveDrained).on('error', resolveDrained);
    });
  }
}

/** The pipe that all answers are written to. */
class LineResponseStream implements ResponseStream {
  constructor(
    private readonly lines: StdioLineWriter,
    readonly carriesRequests: boolean,
  ) {}

  send(message: JsonObject): boolean {
    return this.lines.publish(JSON.stringify(message));
  }

  finish(answer: Reply): void {
    this.lines.answer(formatJson(answer));
  }

  /** A cancelled call has no answer, and no other work has to end. */
  drop(): void {}

  leave(): boolean {
    return false;
  }
}

interface OpenLine {
  readonly source: Subscription;
  /** Sends the final message and removes the stream. */
  readonly finish: () => void;
}

/** The answers that stay open on a pipe; several share it, each identified by its id. */
class OpenLines {
  private readonly lines = new Map<string, OpenLine>();

  begin(id: unknown, result: StreamedResult, writer: StdioLineWriter, log: WarningLog): void {
    const key = JSON.stringify(id);
    this.cancel(id);
    let over = false;
    const end = (last: string) => {
      over = true;
      this.cancel(id);
      writer.answer(last);
    };
    const finish = () => end(resultReply(id, { result: result.final() }).body);
    const source = result.messages.subscribe({
      next: ({ method, params }) => writer.publish(JSON.stringify(notification(method, params))),
      complete: finish,
      error: (error: unknown) => {
        log.warn(faultLine('a stream failed:', error));
        end(internalError(id).body);
      },
    });
    if (!over) this.lines.set(key, { source, finish });
  }

  /** Its client cancelled it and expects no final message. */
  cancel(id: unknown): void {
    const key = JSON.stringify(id);
    this.lines.get(key)?.source.unsubscribe();
    this.lines.delete(key);
  }

  shutDown(): void {
    for (const { finish } of this.lines.values()) finish();
  }
}

/** The client at the other end of the pipe. */
export interface StdioClient {
  /** Its credentials, as headers of a request would show them. */
  readonly credentials: IncomingHttpHeaders;
  readonly log: WarningLog;
}

/** Checks that hold without headers. */
const MESSAGE_CHECKS = [jsonRpc, envelope, servedVersion, servedMethod];
const NO_HEADERS: IncomingHttpHeaders = Object.freeze({});
const NO_CAPABILITIES: JsonObject = Object.freeze({});

/** Serves one client over one pipe; the first messages decide the revision. */
export class StdioConversation {
  /** The only session of this pipe: it needs no id on the wire. */
  private readonly session = randomUUID();
  private readonly open = new OpenLines();
  private version: string = FALLBACK_VERSION;
  private capabilities: JsonObject = NO_CAPABILITIES;
  private logLevel: LogLevel | undefined;

  /** @param telemetry null: nothing is measured */
  constructor(
    private readonly kernel: Kernel,
    private readonly authenticator: Authenticator,
    private readonly wire: Wire,
    private readonly telemetry: Telemetry | null,
    private readonly lines: StdioLineWriter,
    private readonly client: StdioClient,
  ) {}

  get hasBatches(): boolean {
    return this.version === '2025-03-26';
  }

  async answer(message: Message): Promise<void> {
    const answer = await this.outcome(message);
    if (answer) this.lines.answer(formatJson(answer));
  }

  async answerBatch(batch: readonly Message[]): Promise<void> {
    const outcome = (message: Message) => this.outcome(message);
    // Notifications and replies do not wait: they may cancel, or answer, a request.
    const requests = batch.filter((message) => !message.isResponse && !isNotification(message));
    const [outcomes] = await Promise.all([
      new BatchAnswers().run(requests, (message) => message, outcome),
      ...batch.filter((message) => !requests.includes(message)).map(outcome),
    ]);
    const answers = new Map(outcomes);
    const said = batch.map((message) => answers.get(message) ?? null).filter((answer) => answer !== null);
    if (said.length > 0) this.lines.answer(`[${said.map(formatJson).join(',')}]`);
  }

  /** Ends the streams that stay open, each with its result. */
  endStreams(): void {
    this.open.shutDown();
  }

  abortCalls(reason: string): void {
    this.wire.calls.endLabel(this.session, reason);
  }

  /** No message is sent any more. */
  close(): void {
    this.wire.listening.endSession(this.session);
  }

  /** @returns the answer; `null` when there is none, or it was sent already */
  private async outcome(message: Message): Promise<Reply | null> {
    const checked = this.check(message);
    for (const { check } of MESSAGE_CHECKS) {
      const refused = check(checked);
      if (refused) return message.id === undefined ? null : refused;
    }
    let agent: Agent;
    try {
      agent = await this.authenticate();
    } catch (error) {
      const isRefused = error instanceof Refused;
      if (!isRefused && !(error instanceof Unauthorized)) throw error;
      if (message.isResponse || isNotification(message)) return null;
      return isRefused ? callerRefused(error.refusal, message.id) : unauthenticated(message.id);
    }
    if (await this.takeSilently(message, agent)) return null;
    return this.dispatch(message, checked, agent);
  }

  private check(message: Message): CheckedMessage {
    const modern = !message.isResponse && readClaimedVersion(message) !== undefined;
    return {
      message,
      edge: { kernel: this.kernel },
      headers: NO_HEADERS,
      era: modern ? 'modern' : 'legacy',
      version: this.version,
      clientCapabilities: this.capabilities,
    };
  }

  private authenticate(): Promise<Agent> {
    const { authenticator } = this;
    const { credentials } = this.client;
    return authenticator.authenticate(createInnerCredentials(credentials));
  }

  private async takeSilently(message: Message, agent: Agent): Promise<boolean> {
    const { wire } = this;
    if (message.isResponse) {
      await wire.clientRequests.deliver({ owner: callerKey(agent), session: this.session }, message);
      return true;
    }
    if (message.method !== 'notifications/cancelled') return false;
    const requestId = member(message.params, 'requestId');
    this.open.cancel(requestId);
    wire.calls.cancel(
      { owner: callerKey(agent), session: this.session, requestId },
      'notifications_cancelled',
    );
    return true;
  }

  private async dispatch(message: Message, checked: CheckedMessage, agent: Agent): Promise<Reply | null> {
    const { kernel, wire, lines } = this;
    const { era, version, clientCapabilities } = checked;
    const call = new EdgeRequest(agent, {
      wire,
      message,
      label: this.session,
      protocol: { era, version, clientCapabilities, logLevel: this.logLevel },
      session: era === 'legacy' ? this.session : undefined,
      setLogLevel: (level) => {
        this.logLevel = level;
        return Promise.resolve();
      },
    });
    const observed = this.telemetry?.message(toMeasuredMessage(call, checked, call.sessionId));
    call.telemetry = observed;
    call.responseStream = new LineResponseStream(lines, era === 'legacy');
    wire.calls.begin(call);
    try {
      const dispatch = () => kernel.dispatch(message.method, message.params, new McpRequest(agent, call));
      const reply = await (observed ? observed.within(dispatch) : dispatch());
      observed?.ends(findEnding(reply));
      if (reply instanceof StreamedResult) {
        this.open.begin(message.id, reply, lines, this.client.log);
        return null;
      }
      return this.formatReply(reply, call);
    } finally {
      observed?.ends(INTERNAL_ERROR_ENDING);
      wire.calls.end(call);
    }
  }

  private formatReply(
    reply: Exclude<KernelReply, StreamedResult>,
    { message, agent, reason }: EdgeRequest,
  ): Reply | null {
    if ('accepted' in reply || isNotification(message)) return null;
    // The client that cancelled a request does not expect its answer.
    if (reason === 'notifications_cancelled') return null;
    if ('error' in reply) return refusedByKernel(reply.status, reply.error, message.id);
    if (message.method === 'initialize') this.begin(message, reply.result, agent);
    return resultReply(message.id, reply);
  }

  /** The result of the handshake applies to all later messages. */
  private begin({ params }: Message, result: JsonObject, agent: Agent): void {
    this.version = String(result.protocolVersion);
    this.capabilities = readCapabilities(member(params, 'capabilities'));
    this.wire.listening.attach(this.session, agent, {
      deliver: (json) => this.lines.publish(json),
      end: () => undefined,
    });
  }
}
