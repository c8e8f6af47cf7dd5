import { IntrinsicException } from '@nestjs/common';
import { createHash } from 'node:crypto';
import type { Observable } from 'rxjs';
import {
  describeError,
  listFrames,
  type Era,
  type Refusal,
  type RequestTransport,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { oneLine } from '#audit';

/** JSON with sorted object members: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, held: unknown) =>
    isJsonObject(held)
      ? Object.fromEntries(Object.entries(held).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : held,
  );
}

/** Identifies a value without its content. */
export function computeDigest(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('base64url');
}

/** JSON-RPC error codes of answers. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** Busy, too many requests. */
  busy: -32000,
  unauthorized: -32001,
  /** Revisions up to 2025-11-25 only. */
  resourceNotFound: -32002,
  headerMismatch: -32020,
  /** The client did not declare a capability that the answer to the call needs. */
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/**
 * A protocol error: it becomes a JSON-RPC error. The client receives the message.
 * `status` is the HTTP status in the stateless era; the legacy era answers 200.
 */
export class ProtocolError extends IntrinsicException {
  /** The same across two copies of the package and in audit records, where it is `error_class`. */
  override readonly name = 'ProtocolError';
  constructor(
    /** JSON-RPC error code. */
    readonly code: number,
    message: string,
    /** Sent with the error. Default none. */
    readonly data?: unknown,
    /** HTTP status. Default 200. */
    readonly status = 200,
  ) {
    super(message);
  }
}

/** A `tools/call` that is refused before any gate of a tool. The kernel counts and records it. */
export class UnbegunCall extends ProtocolError {
  /** @param refusal the answer, where it is a result instead of an error */
  constructor(
    { code, message, data, status }: ProtocolError,
    readonly refusal: Refusal | null = null,
  ) {
    super(code, message, data, status);
  }
}

export function invalidParams(message = 'Invalid params'): ProtocolError {
  return new ProtocolError(RPC.invalidParams, message);
}

export function methodNotFound(method: string): ProtocolError {
  return new ProtocolError(RPC.methodNotFound, `Method not found: ${method}`, undefined, 404);
}

/** A request header that must mirror the body and does not. */
export function headerMismatch(header: string): ProtocolError {
  return new ProtocolError(
    RPC.headerMismatch,
    `Header mismatch: ${header} does not mirror the body`,
    undefined,
    400,
  );
}

/** Log of internal causes. One line per call; never sent to a client. */
export interface WarningLog {
  warn(message: string): void;
}

/** Class and message of any thrown value, for the log alone. */
export function faultLine(prefix: string, error: unknown): string {
  const said =
    error instanceof Error
      ? `${oneLine(error.name)}: ${oneLine(describeError(error))}`
      : oneLine(typeof error);
  return prefix === '' ? said : `${prefix} ${said}`;
}

/** The same with the frames of its stack, for errors of an application's code. */
export function faultReport(prefix: string, error: unknown): string {
  return `${faultLine(prefix, error)}${listFrames(error)}`;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface KernelResult {
  readonly result: JsonObject;
  /**
   * For a result without an error that was serialised already: the bytes after the id in its JSON-RPC envelope. Then `result`
   * is made when it is read.
   */
  readonly envelopeTail?: Buffer;
}

export interface KernelFailure {
  readonly error: RpcError;
  /** HTTP status a web transport answers with. */
  readonly status: number;
}

/** A failure that a handler returns instead of throwing: an expected one needs no Error with its stack. */
export class RequestFailure implements KernelFailure {
  constructor(
    readonly error: RpcError,
    readonly status: number,
  ) {}
}

/** A notification was accepted and has no answer. */
interface KernelAcceptance {
  readonly accepted: true;
}

/** A JSON-RPC notification without its envelope. */
export interface Notification {
  readonly method: string;
  readonly params?: JsonObject;
}

/** An answer that stays open: it sends notifications, and the result when they complete. */
export class StreamedResult {
  /**
   * @param messages cold: work begins with the subscription and ends with it; an error ends the stream with an internal
   * error
   * @param final sent last, when `messages` completes; a transport that closes first sends it too
   */
  constructor(
    readonly messages: Observable<Notification>,
    readonly final: () => JsonObject,
  ) {}
}

/** The reply to a message: a result, an error, nothing for a notification, or an answer that stays open. */
export type KernelReply = KernelResult | KernelFailure | KernelAcceptance | StreamedResult;

/** A result that a handler completed and serialised itself. */
export class PreparedResult implements KernelResult {
  readonly envelopeTail: Buffer;
  constructor(readonly result: JsonObject) {
    this.envelopeTail = Buffer.from(`,"result":${JSON.stringify(result)}}`);
  }
}

export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

/** How long a client may cache a result (milliseconds), and whether agents may share it. */
export interface CacheHint {
  readonly ttlMs: number;
  readonly cacheScope: 'public' | 'private';
}

/** Adds the members that the stateless era requires in every result; legacy results stay unchanged. */
export class ResultEnvelope {
  constructor(readonly serverInfo: ServerInfo) {}

  complete(era: Era, result: JsonObject, hint: CacheHint | undefined): JsonObject {
    if (era === 'legacy') return result;
    const meta = isJsonObject(result._meta) ? result._meta : {};
    return {
      resultType: 'complete',
      ...result,
      // Client requests are never cached as the answer.
      ...(result['resultType'] === undefined && hint),
      _meta: { ...meta, [SERVER_INFO_KEY]: this.serverInfo },
    };
  }
}

/** The member of `_meta` with the seconds after which a refused call may be made again. */
export const RETRY_AFTER_KEY = 'parse.retry_after';

/** Names that the stateless revisions reserve inside `_meta`. */
export const PROTOCOL_VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
export const CLIENT_CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
export const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
export const SUBSCRIPTION_ID_KEY = 'io.modelcontextprotocol/subscriptionId';

export const MODERN_VERSIONS = ['2026-07-28'] as const;
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
export type LegacyVersion = (typeof LEGACY_VERSIONS)[number];

/**
 * The answer to an `initialize` with an unsupported version, and the default for a legacy request without one: its
 * additional members are ignored by older clients.
 */
export const FALLBACK_VERSION: LegacyVersion = '2025-06-18';

const OLDEST_MODERN = MODERN_VERSIONS[0];
const DATE = /^\d{4}-\d{2}-\d{2}$/;

export function isLegacyVersion(value: unknown): value is LegacyVersion {
  return LEGACY_VERSIONS.includes(value as LegacyVersion);
}

export function isServedModernVersion(value: unknown): boolean {
  return MODERN_VERSIONS.includes(value as (typeof MODERN_VERSIONS)[number]);
}

/** A date of the stateless era, served or not. */
export function namesModernEra(value: string | undefined): boolean {
  return value !== undefined && value >= OLDEST_MODERN && DATE.test(value);
}

/** The features of a revision. Compared by identity: one object per version. */
export interface Dialect {
  readonly version: string;
  readonly era: Era;
  /** Tool annotations. */
  readonly annotations: boolean;
  /** `title`, `outputSchema`, `structuredContent`. */
  readonly structured: boolean;
  /** `structuredContent` need not be an object. */
  readonly anyStructuredRoot: boolean;
  /** Completions, instructions and cursors: the revisions up to 2025-06-18 are frozen without them. */
  readonly additions: boolean;
}

function describe(version: string): Dialect {
  const modern = version >= OLDEST_MODERN;
  return Object.freeze({
    version,
    era: modern ? 'modern' : 'legacy',
    annotations: version >= '2025-03-26',
    structured: version >= '2025-06-18',
    anyStructuredRoot: modern,
    additions: version >= '2025-11-25',
  });
}

const DIALECTS = new Map<string, Dialect>(
  [...LEGACY_VERSIONS, ...MODERN_VERSIONS].map((version) => [version, describe(version)]),
);
const FALLBACK_DIALECT = describe(FALLBACK_VERSION);

/**
 * The dialect of a version. When version and era disagree or the version is unknown, it is that of the era's own
 * version.
 */
export function findDialect(era: Era, version: string): Dialect {
  const named = DIALECTS.get(version);
  if (named?.era === era) return named;
  return (
    (era === 'modern' ? DIALECTS.get(OLDEST_MODERN) : DIALECTS.get(FALLBACK_VERSION)) ?? FALLBACK_DIALECT
  );
}

export interface DeclaringRequest {
  readonly transport: Pick<RequestTransport, 'era' | 'version' | 'clientCapabilities'>;
}

export function readDialect({
  transport: { era = 'legacy', version = FALLBACK_VERSION },
}: DeclaringRequest): Dialect {
  return findDialect(era, version);
}

const DECLARED_CAPABILITY: JsonObject = Object.freeze({});

/** The declared members, each as an empty object: their content is never read. */
function readDeclared(value: unknown, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.filter((name) => isJsonObject(member(value, name))).map((name) => [name, DECLARED_CAPABILITY]),
  );
}

/**
 * An empty object means forms, so the result must not be empty when the client declares other modes; `form: false`
 * counts as another mode.
 */
function elicitation(value: unknown): unknown {
  if (!isJsonObject(value)) return true;
  const modes = readDeclared(value, ['form', 'url']);
  return Object.keys(modes).length > 0 || Object.keys(value).length === 0 ? modes : { form: false };
}

/**
 * The client capabilities that the server uses, without the rest: a few dozen bytes, whatever the client sent. They are
 * stored with sessions and tasks.
 */
export function readCapabilities(given: unknown): JsonObject {
  if (!isJsonObject(given)) return {};
  const extensions = readDeclared(given.extensions, [TASKS_EXTENSION, VIEWS_EXTENSION]);
  return {
    ...readDeclared(given, ['roots']),
    ...(isJsonObject(given.sampling) && { sampling: readDeclared(given.sampling, ['tools']) }),
    ...(Boolean(given.elicitation) && { elicitation: elicitation(given.elicitation) }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  };
}

/** Name of the extension in capabilities (MCP Apps 2026-01-26). */
export const VIEWS_EXTENSION = 'io.modelcontextprotocol/ui';

/**
 * Whether the client declares that it shows the views of tools. Revisions up to 2025-06-18 are frozen without
 * extensions.
 */
export function showsViews({ transport }: DeclaringRequest, { additions }: Dialect): boolean {
  return (
    additions && isJsonObject(member(member(transport.clientCapabilities, 'extensions'), VIEWS_EXTENSION))
  );
}

/** Name of the extension in capabilities (MCP 2026-07-28, extensions/tasks). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Whether the client of this request declares support for tasks. */
export function declaresTasks({ transport: { era, clientCapabilities } }: DeclaringRequest): boolean {
  return era === 'modern' && isJsonObject(member(member(clientCapabilities, 'extensions'), TASKS_EXTENSION));
}

export function tasksNotDeclared(): ProtocolError {
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  return new ProtocolError(RPC.missingCapability, 'Missing required client capability', data, 400);
}
