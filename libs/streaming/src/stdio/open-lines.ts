import type { Subscription } from 'rxjs';
import { faultLine, type StreamedResult, type WarningLog } from '#dispatcher';
import { internalError } from '../http/refusals.js';
import { resultReply } from '../reply.js';
import { notification } from '../sse/frames.js';
import type { LineWriter } from './line-writer.js';

interface OpenLine {
  readonly source: Subscription;
  /** Says the last word and forgets the stream. */
  readonly finish: () => void;
}

/** The answers that stay open on a pipe; several share it, each told apart by the id it carries. */
export class OpenLines {
  private readonly lines = new Map<string, OpenLine>();

  begin(id: unknown, result: StreamedResult, writer: LineWriter, log: WarningLog): void {
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
      next: ({ method, params }) => writer.tell(JSON.stringify(notification(method, params))),
      complete: finish,
      error: (fault: unknown) => {
        log.warn(faultLine('[StdioEdge] a stream failed:', fault));
        end(internalError(id).body);
      },
    });
    if (!over) this.lines.set(key, { source, finish });
  }

  /** Its client wants no more of it, and no last word either. */
  cancel(id: unknown): void {
    const key = JSON.stringify(id);
    this.lines.get(key)?.source.unsubscribe();
    this.lines.delete(key);
  }

  shutDown(): void {
    for (const { finish } of this.lines.values()) finish();
  }
}
