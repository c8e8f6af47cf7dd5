import type { JsonObject } from '#dispatcher';
import type { Carrier } from '../answers/carrier.js';
import { jsonOf } from '../answers/carrier.js';
import type { Reply } from '../reply.js';
import type { LineWriter } from './line-writer.js';

/** The one pipe that all answers leave on. */
export class LineCarrier implements Carrier {
  constructor(
    private readonly lines: LineWriter,
    readonly carriesRequests: boolean,
  ) {}

  send(message: JsonObject): boolean {
    return this.lines.tell(JSON.stringify(message));
  }

  finish(answer: Reply): void {
    this.lines.answer(jsonOf(answer));
  }

  /** A cancelled call has no answer, and nothing else has to end. */
  drop(): void {}

  left(): boolean {
    return false;
  }
}
