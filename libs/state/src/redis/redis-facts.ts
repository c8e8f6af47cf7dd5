/** What an operator should check about a primary of the configured Redis. */
export interface RedisFacts {
  readonly address: string;
  readonly version: string;
  /** Servers that hold a copy of what this primary holds. */
  readonly replicas: number;
  /** Whether its data survives a restart: every write, snapshots, or nothing; null: it is not reported. */
  readonly persistence: 'append-only file' | 'snapshots' | 'none' | null;
  /** The eviction policy when its memory is full, such as `noeviction`; null: it is not reported. */
  readonly eviction: string | null;
  /** Maximum bytes that it may use; 0: no limit. */
  readonly maxMemory: number;
  /** Milliseconds that its clock is ahead of the process clock, accurate to the round-trip time. */
  readonly clockAhead: number;
}
