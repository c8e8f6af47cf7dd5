/** Status of a replica for operators. */
export interface ServiceReport {
  readonly version: string;
  readonly node: string;
  /** ISO 8601. */
  readonly started_at: string;
  readonly replica: string;
  /** `replicas`: the state is shared by several processes. */
  readonly shared_state: 'process' | 'replicas';
  readonly memory_bytes: number;
  readonly policy: {
    readonly version: string;
    readonly classes: number;
    readonly agents: number;
    /** Number of the configuration version: 1 at the start, incremented by each reload. */
    readonly edition: number;
    readonly loaded_at: string;
    /** The latest configuration file that was refused, and why; null when there was none. */
    readonly last_refused: { readonly at: string; readonly faults: readonly string[] } | null;
  };
  /** Configured external services; empty when there are none. */
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>;
  readonly streams: { readonly calls: number; readonly listening: number; readonly console: number };
}

/** Reads the status of this replica. */
export abstract class ServiceStatus {
  abstract read(): Promise<ServiceReport>;
}
