export interface ServerConfig {
  /** Address to listen on. Anything but loopback needs authentication. Default `127.0.0.1`. */
  readonly host: string;
  /** Default 3001; 0 takes a free one. */
  readonly port: number;
  /** Where MCP is served. Default `/mcp`. */
  readonly path: string;
  /** URL of `path` as clients know it, where it is not that of the first audience. Default null. */
  readonly publicUrl: string | null;
  /** Bytes of one request body. Default 1,048,576. */
  readonly maxBodySize: number;
  /** Seconds between keep-alives of a stream; 0 or less: none. Default 2. */
  readonly heartbeatInterval: number;
  /** Calls, and separately open streams, served at once; null: unbounded. Default 100. */
  readonly maxConcurrentDispatchers: number | null;
  /** Calls of one principal that run at once in this process; further ones wait, then are refused. Null: unbounded. Default 20. */
  readonly maxRunningCalls: number | null;
  /** Open at once; further ones are closed. Default 10,000. */
  readonly maxConnections: number;
  readonly allowedOrigins: readonly string[];
  /** Host names accepted besides loopback ones. */
  readonly allowedHosts: readonly string[];
  /** A header every request must carry: its name, or one name with its exact value. */
  readonly requireCustomHeader: string | Readonly<Record<string, string>> | null;
  /** Refuses bodies of undeclared length (411). Default true. */
  readonly requireContentLength: boolean;
  /** Seconds a person has to decide. Default 300. */
  readonly approvalTimeout: number;
  /** Seals what clients carry between two rounds of a call; at least 32 characters. Default: one that replicas share by themselves. */
  readonly stateKey: string | null;
  /** Keys that were `stateKey` before: what they sealed is still accepted. */
  readonly previousStateKeys: readonly string[];
  /** `strict`: legacy requests need a session that is known and their own (400 without, 404 otherwise); `lenient`: an unknown id is a label without power. Default `lenient`. */
  readonly sessions: 'lenient' | 'strict';
  /** Seconds that running calls and tasks have to end in when the process is asked to. Default 30. */
  readonly drainTimeout: number;
  /** Requests per window (seconds) and remote address, before anyone is authenticated. Default none. */
  readonly preAuthRateLimit: { readonly limit: number; readonly window: number } | null;
  /** Messages per window (seconds) and principal, besides `ping` and calls of tools. Default 1,200 in 60; null: no limit. */
  readonly requestRateLimit: { readonly limit: number; readonly window: number } | null;
}

export const DEFAULT_SERVER: ServerConfig = Object.freeze({
  host: '127.0.0.1',
  port: 3001,
  path: '/mcp',
  publicUrl: null,
  maxBodySize: 1_048_576,
  heartbeatInterval: 2,
  maxConcurrentDispatchers: 100,
  maxRunningCalls: 20,
  maxConnections: 10_000,
  allowedOrigins: [],
  allowedHosts: [],
  requireCustomHeader: null,
  requireContentLength: true,
  approvalTimeout: 300,
  stateKey: null,
  previousStateKeys: [],
  drainTimeout: 30,
  sessions: 'lenient',
  preAuthRateLimit: null,
  requestRateLimit: Object.freeze({ limit: 1200, window: 60 }),
});
