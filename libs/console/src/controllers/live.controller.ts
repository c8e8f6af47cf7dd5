import { Get, Inject, Injectable, type OnModuleDestroy, Res } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { EventStream, McpEdge, NotServed, type UnreadAnswers } from '#streaming';
import { CurrentOperator, OperatorController, WithoutSharedState } from '../console.guards.js';
import { LiveRecords } from '../live-records.js';
import type { Operator } from '../operator-gate.js';

const SETTINGS = {
  /** Maximum number of streams of this process. */
  maxStreams: 50,
  /** Maximum number of streams of one operator. */
  maxPerOperator: 4,
  /** Milliseconds between two checks of the operator's credential. */
  confirmInterval: 10_000,
  /** Bytes that are buffered for a slow browser. */
  maxBuffered: 262_144,
};

/**
 * Event streams to browsers. Their number is bounded, and each ends when its operator's credential is no longer
 * valid.
 */
@Injectable()
export class LiveStreams implements OnModuleDestroy {
  private readonly settings = SETTINGS;
  private readonly unread: Pick<UnreadAnswers, 'wrote'>;
  private readonly open = new Map<EventStream, { readonly principal: string; readonly end: () => void }>();

  constructor(
    @Inject(LiveRecords) private readonly records: LiveRecords,
    @Inject(McpEdge) { unread }: Pick<McpEdge, 'unread'>,
  ) {
    this.unread = unread;
  }

  get size(): number {
    return this.open.size;
  }

  /** @throws NotServed when there are too many streams */
  serve({ agent, confirm }: Operator, response: ServerResponse): void {
    const { principal } = agent;
    // A connection that closed while the guards ran is not reported any more: its place would stay taken.
    if (response.destroyed) return;
    this.admit(principal);
    const stream = new EventStream(response, this.settings.maxBuffered, this.unread);
    stream.open({ 'Cache-Control': 'no-store' });
    stream.write('event: watching\ndata: {}\n\n');
    const watched = this.records.watch().subscribe((batch) => {
      stream.write(`event: records\ndata: ${JSON.stringify(batch)}\n\n`);
    });
    const timer = setInterval(() => {
      confirm().then(
        () => stream.write(': watching\n\n'),
        () => end('signed-out'),
      );
    }, this.settings.confirmInterval);
    timer.unref();
    const end = (why: string) => {
      stream.write(`event: ended\ndata: ${JSON.stringify({ why })}\n\n`);
      stream.end();
    };
    this.open.set(stream, { principal, end: () => end('draining') });
    response.once('close', () => {
      clearInterval(timer);
      watched.unsubscribe();
      this.open.delete(stream);
    });
  }

  /** Ends every stream with an `ended` event. */
  close(): void {
    for (const { end } of this.open.values()) end();
  }

  onModuleDestroy(): void {
    this.close();
    this.records.close();
  }

  private admit(principal: string): void {
    const own = [...this.open.values()].filter((known) => known.principal === principal).length;
    if (own >= this.settings.maxPerOperator)
      throw new NotServed(429, 'too many pages of yours watch already', { 'Retry-After': '5' });
    if (this.open.size >= this.settings.maxStreams)
      throw new NotServed(503, 'too many pages watch already', { 'Retry-After': '30' });
  }
}

/** Streams calls, refusals and decisions of every replica as they are recorded. */
@OperatorController('console/api/live')
export class LiveController {
  constructor(@Inject(LiveStreams) private readonly streams: LiveStreams) {}

  @Get()
  @WithoutSharedState()
  watch(@CurrentOperator() operator: Operator, @Res() response: ServerResponse): void {
    this.streams.serve(operator, response);
  }
}
