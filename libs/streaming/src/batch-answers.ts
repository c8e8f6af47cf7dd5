import { lastValueFrom, mergeMap, of, toArray } from 'rxjs';
import { StreamedResult } from '#dispatcher';
import { batchAnswerLeftOut, batchMessageNotRun } from './http/refusals.js';
import type { Reply, Message } from './message.js';

/** Maximum bytes of all answers to one batch, which are combined before they are sent. */
const MAX_BATCH_ANSWER = 8 * 1024 * 1024;
/** Messages of one batch that are processed at once. */
const MAX_CONCURRENCY = 4;

/** The answers to one batch while they arrive: bounded, whatever the number of messages. */
export class BatchAnswers {
  private bytes = 0;
  private isFull = false;

  /**
   * Runs some messages of the batch, a few at once. Once the answers reach the limit, no further message is started; of the
   * running ones, the answers that still fit are kept.
   * @returns the results, in no particular order
   */
  async run<T, O extends Reply | StreamedResult | null>(
    messages: readonly T[],
    toMessage: (one: T) => Message,
    answer: (one: T) => Promise<O>,
  ): Promise<(readonly [T, O | Reply])[]> {
    const run = async (one: T) => {
      const { id } = toMessage(one);
      const outcome = this.isFull ? batchMessageNotRun(id) : this.keepWithin(await answer(one), id);
      return [one, outcome] as const;
    };
    return lastValueFrom(of(...messages).pipe(mergeMap(run, MAX_CONCURRENCY), toArray()));
  }

  /** The first answer is always kept: alone it is no larger than an answer outside of a batch. */
  private keepWithin<O extends Reply | StreamedResult | null>(outcome: O, id: unknown): O | Reply {
    if (outcome === null || outcome instanceof StreamedResult) return outcome;
    const bytes = Buffer.byteLength(outcome.body) + (outcome.tail?.length ?? 0);
    const fits = this.bytes === 0 || this.bytes + bytes <= MAX_BATCH_ANSWER;
    if (fits) this.bytes += bytes;
    if (!fits || this.bytes >= MAX_BATCH_ANSWER) this.isFull = true;
    return fits ? outcome : batchAnswerLeftOut(id);
  }
}
