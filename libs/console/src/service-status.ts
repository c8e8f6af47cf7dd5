/** How the service is, for its operators. */
export interface ServiceReport {
  readonly version: string;
  readonly node: string;
  /** ISO 8601. */
  readonly started_at: string;
  readonly replica: string;
  /** `replicas`: several processes serve as one. */
  readonly shared_state: 'process' | 'replicas';
  readonly memory_bytes: number;
  readonly policy: {
    readonly version: string;
    readonly classes: number;
    readonly agents: number;
    /** 1 for the configuration of the start, one more for each that followed. */
    readonly edition: number;
    readonly loaded_at: string;
    /** The last file that was not taken, and why; null when there was none. */
    readonly last_refused: { readonly at: string; readonly faults: readonly string[] } | null;
  };
  /** Of what is configured; empty when everything is within the process. */
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>;
  readonly streams: { readonly calls: number; readonly listening: number; readonly console: number };
}

/** Reads how this replica is. */
export abstract class ServiceStatus {
  abstract read(): Promise<ServiceReport>;
}
