import type { RateLimiter } from '#core';
import { HostPolicy, OriginPolicy } from './host-and-origin.js';

export interface McpEdgeOptions {
  /** Where MCP is served; one trailing slash is tolerated. Default `/mcp`. */
  readonly path?: string;
  /** Bytes. Default 1,048,576. */
  readonly maxBodySize?: number;
  /** Whole origins, or `.example.com` for a domain with its subdomains. Default: any. */
  readonly allowedOrigins?: readonly string[] | null;
  /** Host names besides loopback ones, with a port only where the port matters. Default: any, but see `loopbackHosts`. */
  readonly allowedHosts?: readonly string[] | null;
  /** A header every POST must carry, by name, or as `{ name: value }`. Default: none. */
  readonly requireCustomHeader?: string | Readonly<Record<string, string>> | null;
  /** Refuse bodies of undeclared length before reading them. Default true. */
  readonly requireContentLength?: boolean;
  /** Without `allowedHosts`, only loopback names are allowed: for a server bound to loopback. Default true. */
  readonly loopbackHosts?: boolean;
  /**
   * Without `allowedOrigins`, only pages of this machine are allowed: for a server without authentication, where any page
   * could otherwise act for its visitor. Default true.
   */
  readonly loopbackOrigins?: boolean;
  /** Answers GET with `{"status":"ok"}` before any other check but the host. Default: none. */
  readonly healthPath?: string | null;
  /** Charged per remote address before any expensive check. Default: none. */
  readonly preAuthRateLimiter?: RateLimiter | null;
  /** `strict`: a session id is required and must be known. Default `lenient`: an unknown one is a mere label. */
  readonly sessions?: 'lenient' | 'strict';
  /**
   * Charged per principal by every message except `ping` and calls of tools, which have limits of their own. Default: none.
   */
  readonly requestLimiter?: RateLimiter | null;
  /** Words a refused verb as the standalone server does; false: as a mounted handler. Default true. */
  readonly standalone?: boolean;
  /** Milliseconds a body may take to arrive. Default 30,000. */
  readonly bodyTimeout?: number;
  /** Milliseconds between keep-alives on an open stream; 0 or less: none. Default 2,000. */
  readonly heartbeatInterval?: number;
  /** Milliseconds between two checks of the credentials that streams were opened with. Default 10,000. */
  readonly credentialsInterval?: number;
  /** Streamed answers, and separately listening streams, served at once; null: unbounded. Default 100. */
  readonly maxConcurrentDispatchers?: number | null;
  /** Bytes that may wait for the reader of a stream before the stream is closed. Default 1,048,576. */
  readonly maxStreamBuffer?: number;
  /**
   * Milliseconds for which a reader of any answer may accept nothing of what waits for it before its connection is closed.
   * Default 30,000.
   */
  readonly readerPatience?: number;
  /** Bytes of answers that may wait for the readers of one principal, or of an address before authentication. Default 33,554,432. */
  readonly maxUnread?: number;
  /** Milliseconds for which the reader of a file may accept nothing before the transfer is aborted. Default 60,000. */
  readonly downloadPatience?: number;
  /** Maximum messages in one body, where the revision has batches. Default 50. */
  readonly maxBatchSize?: number;
}

/** The options, checked and compiled once. */
export interface EdgeSettings {
  readonly path: string;
  readonly healthPath: string | null;
  readonly maxBodySize: number;
  readonly requireContentLength: boolean;
  readonly origins: OriginPolicy;
  readonly hosts: HostPolicy;
  readonly customHeader: CustomHeader | null;
  readonly preAuthRateLimiter: RateLimiter | null;
  readonly strictSessions: boolean;
  readonly requestLimiter: RateLimiter | null;
  readonly standalone: boolean;
  readonly bodyTimeout: number;
  readonly heartbeatInterval: number;
  readonly credentialsInterval: number;
  readonly maxConcurrentDispatchers: number | null;
  readonly maxStreamBuffer: number;
  readonly readerPatience: number;
  readonly maxUnread: number;
  readonly downloadPatience: number;
  readonly maxBatchSize: number;
}

interface CustomHeader {
  /** Lower case. */
  readonly name: string;
  /** `null`: any value that is not empty. */
  readonly value: string | null;
}

function positive(value: number, option: string): number {
  if (!Number.isSafeInteger(value) || value < 1)
    throw new TypeError(`${option}: expected a positive integer`);
  return value;
}

/** The maximum that a timer supports. */
function milliseconds(value: number, option: string): number {
  if (!Number.isFinite(value) || value > 2_147_483_647)
    throw new TypeError(`${option}: expected milliseconds`);
  return value;
}

function pathOption(value: string, option: string): string {
  if (!/^\/[^?#\s]*$/.test(value) || (value.length > 1 && value.endsWith('/'))) {
    throw new TypeError(`${option}: expected a path that begins, and does not end, with a slash`);
  }
  return value;
}

function customHeader(value: McpEdgeOptions['requireCustomHeader']): CustomHeader | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value.trim() === '' ? null : named(value, null);
  const pairs = typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : [];
  const [pair] = pairs;
  if (pairs.length !== 1 || !pair || typeof pair[1] !== 'string') {
    throw new TypeError('requireCustomHeader: expected a header name or one { name: value }');
  }
  return pair[0].trim() === '' ? null : named(pair[0], pair[1]);
}

function named(name: string, value: string | null): CustomHeader {
  return { name: name.trim().toLowerCase(), value };
}

function limiterOption(value: RateLimiter | null | undefined, option: string): RateLimiter | null {
  const limiter = value ?? null;
  if (limiter !== null && typeof limiter.check !== 'function')
    throw new TypeError(`${option}: expected an object with a check method`);
  return limiter;
}

/** @throws TypeError naming the invalid option */
export function compileEdgeOptions(options: McpEdgeOptions = {}): EdgeSettings {
  const sessions = options.sessions ?? 'lenient';
  if (sessions !== 'lenient' && sessions !== 'strict')
    throw new TypeError('sessions: expected lenient or strict');
  return Object.freeze({
    path: pathOption(options.path ?? '/mcp', 'path'),
    healthPath: options.healthPath ? pathOption(options.healthPath, 'healthPath') : null,
    maxBodySize: positive(options.maxBodySize ?? 1_048_576, 'maxBodySize'),
    requireContentLength: options.requireContentLength ?? true,
    origins: new OriginPolicy(options.allowedOrigins ?? [], options.loopbackOrigins ?? true),
    hosts: new HostPolicy(options.allowedHosts ?? [], options.loopbackHosts ?? true),
    customHeader: customHeader(options.requireCustomHeader),
    preAuthRateLimiter: limiterOption(options.preAuthRateLimiter, 'preAuthRateLimiter'),
    strictSessions: sessions === 'strict',
    requestLimiter: limiterOption(options.requestLimiter, 'requestLimiter'),
    standalone: options.standalone ?? true,
    bodyTimeout: positive(options.bodyTimeout ?? 30_000, 'bodyTimeout'),
    heartbeatInterval: milliseconds(options.heartbeatInterval ?? 2_000, 'heartbeatInterval'),
    credentialsInterval: positive(options.credentialsInterval ?? 10_000, 'credentialsInterval'),
    maxConcurrentDispatchers:
      options.maxConcurrentDispatchers === null
        ? null
        : positive(options.maxConcurrentDispatchers ?? 100, 'maxConcurrentDispatchers'),
    maxStreamBuffer: positive(options.maxStreamBuffer ?? 1_048_576, 'maxStreamBuffer'),
    readerPatience: positive(options.readerPatience ?? 30_000, 'readerPatience'),
    maxUnread: positive(options.maxUnread ?? 33_554_432, 'maxUnread'),
    downloadPatience: positive(options.downloadPatience ?? 60_000, 'downloadPatience'),
    maxBatchSize: positive(options.maxBatchSize ?? 50, 'maxBatchSize'),
  });
}
