import { FairTurns, NoTurn, Refused, refusals } from '#agent';
import { StoreError } from '../record-store.js';

export interface DatabaseTurnsOptions {
  /** Operations of agents that run at once. Default 90: of 100 connections, the rest are for sessions, roles, records and changes. */
  readonly atOnce?: number;
  /** Those of one principal. Default 10. */
  readonly perPrincipal?: number;
  /** Milliseconds that an operation waits. Default 10,000. */
  readonly patience?: number;
}

/** Operations of one principal, and of all, that may wait. */
const WAITING = { waitingPerKey: 1_000, waiting: 10_000 };

/**
 * Shares what the database can do at once among principals: each may have a part of it, and those that wait are served in
 * turn. For this process: what other replicas ask of the database is not known here.
 */
export class DatabaseTurns {
  private readonly turns: FairTurns;

  constructor({ atOnce = 90, perPrincipal = 10, patience = 10_000 }: DatabaseTurnsOptions = {}) {
    this.turns = new FairTurns({ atOnce, perKey: perPrincipal, patience, ...WAITING });
  }

  /** @throws Refused when the principal's own operations leave it no turn; StoreError when those of all do, or when it is cancelled */
  async run<T>(principal: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const end = await this.turns.turn(principal, signal).catch((error: unknown) => {
      if (signal.aborted) throw new StoreError('cancelled', { cause: error });
      if (!(error instanceof NoTurn)) throw error;
      if (error.own) throw new Refused(refusals.databaseShareTaken(1 + Math.random() * 4));
      throw new StoreError('unavailable', { cause: error });
    });
    try {
      return await work();
    } finally {
      end();
    }
  }
}
