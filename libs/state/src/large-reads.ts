import { Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { FairQueue, NoCapacityError } from '#core';
import { SharedStateUnavailable } from './ports/stores.js';

/** Other commands wait behind each read, and an answer that is late counts as an outage. */
const TURNS = { atOnce: 2, perKey: 1, waitingPerKey: 1_000, timeout: 5_000 };
/** Milliseconds. After a longer read the next one waits for as long as this one took: by then its answer is written, and others were served. */
const SHORT_READ = 5;

/**
 * Reads of what may be megabytes that a caller may ask for as often as it likes: results of tasks, frames of streams. One of a principal at
 * a time, so that it keeps neither the connection nor the memory from the others.
 */
@Injectable()
export class LargeReads {
  private readonly turns = new FairQueue(TURNS);

  /** @throws SharedStateUnavailable, also where too many reads of the principal wait */
  async run<T>(principal: string, read: () => Promise<T>): Promise<T> {
    const end = await this.turns.turn(principal).catch((error: unknown) => {
      throw error instanceof NoCapacityError ? new SharedStateUnavailable(error) : error;
    });
    const began = performance.now();
    try {
      return await read();
    } finally {
      const taken = performance.now() - began;
      if (taken <= SHORT_READ) end();
      else void pause(taken, undefined, { ref: false }).then(end);
    }
  }
}
