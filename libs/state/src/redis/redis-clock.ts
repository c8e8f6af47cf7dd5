import type { SharedStateLog } from '../ports/shared-state.js';
import { steadyClock } from '../ports/stores.js';
import { type RedisConnection, RedisScript } from './redis-connection.js';

/** A script, so that a node of a cluster that holds keys is asked. */
const TIME = new RedisScript(`return redis.call('TIME')`);

/** Milliseconds between two measurements. */
const MEASURE_INTERVAL = 30_000;
/** Milliseconds after which an answer is too late to say what time it is: the error is up to half of them. */
const MAX_ANSWER_TIME = 1_000;
/** Milliseconds by which the clock of the machine may differ before it is logged; access tokens are given as much. */
const MAX_CLOCK_DIFFERENCE = 30_000;

interface Clocks {
  /** Milliseconds since 1970, unchanged by what happens to the clock of the machine. */
  readonly steady: () => number;
  /** The clock of the machine. */
  readonly wall: () => number;
}

/**
 * The clock of Redis as this process knows it: its own steady clock and the measured difference. Before the first measurement,
 * and while Redis is unavailable, it goes on with the last difference.
 */
export class RedisClock {
  private ahead = 0;
  private differs = false;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly redis: RedisConnection,
    private readonly log: SharedStateLog,
    private readonly clocks: Clocks = { steady: steadyClock, wall: Date.now },
  ) {
    this.timer = setInterval(() => void this.measure(), MEASURE_INTERVAL);
    this.timer.unref();
    redis.onReturn(() => void this.measure());
  }

  now(): number {
    return this.clocks.steady() + this.ahead;
  }

  /** Never rejects. */
  async measure(): Promise<void> {
    const { steady } = this.clocks;
    const asked = steady();
    try {
      const key = this.redis.key('clock', '');
      const [seconds, micros] = (await this.redis.send((redis) => TIME.run(redis, [key]))) as [
        string,
        string,
      ];
      const answered = steady();
      if (answered - asked > MAX_ANSWER_TIME) return;
      const there = Number(seconds) * 1000 + Number(micros) / 1000;
      if (Number.isFinite(there)) this.ahead = there - (asked + answered) / 2;
    } catch {
      return;
    }
    this.compareMachine();
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Tokens and sessions of Parse are compared with the clock of the machine: an operator learns when it is wrong. */
  private compareMachine(): void {
    const difference = this.clocks.wall() - this.now();
    const differs = Math.abs(difference) > MAX_CLOCK_DIFFERENCE;
    if (differs === this.differs) return;
    this.differs = differs;
    const seconds = Math.round(Math.abs(difference) / 1000);
    const side = difference > 0 ? 'ahead of' : 'behind';
    this.log.warn(
      differs
        ? `[Redis] the clock of this machine is ${seconds} s ${side} that of Redis: access tokens and sessions of Parse end at the wrong time; synchronise the clocks`
        : '[Redis] the clock of this machine agrees with that of Redis again',
    );
  }
}
