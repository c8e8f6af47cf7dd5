/** A service that listens. */
export interface RunningService {
  /** URL of the MCP endpoint. */
  readonly url: string;
  /** Reloads the configuration now. */
  reload(): Promise<void>;
  close(): Promise<void>;
}
