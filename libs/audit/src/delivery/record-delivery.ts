import type { ChainHead } from '../audit-event.js';
import type { SealedLine } from '../chain/record-seal.js';

/** One place that records go to. It is asked for one thing at a time, and again for what it did not take. */
export interface RecordDelivery {
  /** For the operator's log: no address, no password. */
  readonly name: string;
  /** Records that it takes at once. */
  readonly batch: number;
  /**
   * What it holds last, where it can tell: the next chain names it as what came before.
   * @throws when it cannot be reached
   */
  open(): Promise<ChainHead | null>;
  /** All of them, in order, kept as firmly as this place promises. @throws when any of them is not */
  deliver(records: readonly SealedLine[]): Promise<void>;
  close(): Promise<void>;
}

/** How a place does, for the operator. `buffering`: records wait on disk for it. `down`: calls are refused. */
export const KEEPER_STATES = ['up', 'buffering', 'down'] as const;
export type KeeperState = (typeof KEEPER_STATES)[number];

/** A place under its rule for failures. */
export interface RecordKeeper {
  readonly name: string;
  readonly state: KeeperState;
  /** Nothing more can even wait. */
  readonly isFull: boolean;
  /** @returns the head of what is there already; null when there is nothing, or nobody answers */
  open(): Promise<ChainHead | null>;
  /**
   * @returns a promise when somebody has to wait for it: kept when it resolves. The record is not forgotten when it
   * rejects, and is delivered when that is possible again.
   */
  keep(record: SealedLine): Promise<void> | undefined;
  /** Delivers what waits as far as that is possible within `patience` milliseconds. */
  close(patience: number): Promise<void>;
}

/** Why a record is not kept yet. */
export class RecordNotKept extends Error {
  override readonly name = 'RecordNotKept';
}

/** Where the operator hears of places that fail and come back. */
export interface DeliveryLog {
  log(line: string): void;
  warn(line: string): void;
}

/** A fault in words that hold neither an address nor a path of the network. */
export function faultName(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown fault';
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? `${error.name} ${code}` : error.name;
}
