import type { Readable, Writable } from 'node:stream';
import type { Authenticator } from '#auth';
import { SERVER_SHUTDOWN } from '#core';
import { faultLine, type Kernel, type WarningLog } from '#dispatcher';
import type { Telemetry } from '#telemetry';
import { internalError, NOT_A_MESSAGE, payloadTooLarge, unreadableBody } from '../http/refusals.js';
import { type Message, parseBody, readBatch, readMessage, type Reply } from '../message.js';
import type { Wire } from '../sessions/wire.js';
import {
  type Line,
  LineReader,
  StdioLineWriter,
  type StdioClient,
  StdioConversation,
} from './stdio-conversation.js';

export interface StdioOptions extends StdioClient {
  readonly input: Readable;
  readonly output: Writable;
  /** Bytes of one message. Default 1,048,576. */
  readonly maxMessageSize?: number;
  /** Bytes that may wait for a reader before messages other than answers are dropped. Default 1,048,576. */
  readonly maxBuffered?: number;
  /** Messages of one array, where the revision has them. Default 50. */
  readonly maxBatchSize?: number;
}

/** MCP over stdio: one message per line, in every revision, for the client at the other end. */
export class StdioEdge {
  private readonly lines: StdioLineWriter;
  private readonly reader: LineReader;
  private readonly conversation: StdioConversation;
  private readonly running = new Set<Promise<void>>();
  private readonly input: Readable;
  private readonly log: WarningLog;
  private readonly maxMessageSize: number;
  private readonly maxBatchSize: number;

  /** @param telemetry null: nothing is measured */
  constructor(
    kernel: Kernel,
    authenticator: Authenticator,
    wire: Wire,
    telemetry: Telemetry | null,
    options: StdioOptions,
  ) {
    const { input, output, maxMessageSize = 1_048_576, maxBuffered = 1_048_576, maxBatchSize = 50 } = options;
    this.input = input;
    this.log = options.log;
    this.maxMessageSize = maxMessageSize;
    this.maxBatchSize = maxBatchSize;
    this.reader = new LineReader(maxMessageSize);
    this.lines = new StdioLineWriter(output, maxBuffered);
    this.conversation = new StdioConversation(kernel, authenticator, wire, telemetry, this.lines, options);
    // The reader disconnected: no client remains to be served.
    output.on('error', () => input.destroy());
  }

  /** Serves until the input ends and every call is answered. Never rejects. */
  async run(): Promise<void> {
    try {
      for await (const chunk of this.input) {
        for (const line of this.reader.take(chunk as Buffer)) this.take(line);
        if (this.lines.isBehind) await this.lines.caughtUp();
      }
      const last = this.reader.end();
      if (last) this.take(last);
    } catch (error) {
      if (!this.input.destroyed) this.log.warn(faultLine('the input failed:', error));
    }
    this.conversation.endStreams();
    await Promise.all(this.running);
    this.conversation.close();
  }

  /** Ends running calls, and with them `run`. */
  stop(): void {
    this.conversation.abortCalls(SERVER_SHUTDOWN);
    this.input.destroy();
  }

  private take(line: Line): void {
    const reading = line === 'too-long' ? null : parseBody(line.bytes);
    if (reading === null) return this.refuse(payloadTooLarge('message', this.maxMessageSize));
    if (!reading.ok) return this.refuse(unreadableBody(reading.fault));
    if (Array.isArray(reading.value)) return this.takeBatch(reading.value);
    const message = readMessage(reading.value);
    if (!message) return this.refuse(NOT_A_MESSAGE);
    this.begin(message, this.conversation.answer(message));
  }

  private takeBatch(values: readonly unknown[]): void {
    const batch = this.conversation.hasBatches ? readBatch(values, this.maxBatchSize) : null;
    if (!batch) return this.refuse(NOT_A_MESSAGE);
    this.begin(undefined, this.conversation.answerBatch(batch));
  }

  private begin(message: Message | undefined, work: Promise<void>): void {
    const settled = work
      .catch((error: unknown) => {
        this.log.warn(faultLine('', error));
        this.refuse(internalError(message?.id));
      })
      .finally(() => this.running.delete(settled));
    this.running.add(settled);
  }

  private refuse({ body }: Reply): void {
    this.lines.answer(body);
  }
}
