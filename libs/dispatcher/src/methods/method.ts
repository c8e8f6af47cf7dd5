import 'reflect-metadata';
import type { McpRequest, JsonObject } from '#core';
import { listMethods } from '#tools';
import {
  type Dialect,
  type LegacyVersion,
  type CacheHint,
  type PreparedResult,
  type RequestFailure,
  type StreamedResult,
  invalidParams,
  type WarningLog,
} from '../protocol.js';

/** Returns the result without the members of the era, or a complete result. @throws ProtocolError */
export type MethodHandler = (params: JsonObject, request: McpRequest) => Handled | Promise<Handled>;
/** What a handler returns: a result, a complete one, one that stays open, or an expected failure. */
export type Handled = JsonObject | PreparedResult | StreamedResult | RequestFailure;

/** Which revisions have a method, and how its answer is treated. */
export interface MethodRevisions {
  /** The first legacy revision that has it; `null`: none. Default: the first of all. */
  readonly legacySince?: LegacyVersion | null;
  /** Whether the stateless revisions have it. Default true. */
  readonly modern?: boolean;
  /** How long clients may keep the answer, in the stateless revisions. Default: they may not. */
  readonly cache?: CacheHint;
  /** Its answer may be a client request; the member of the params that names what the request is about. Default: it may not. */
  readonly asksAbout?: string;
}

interface DeclaredMethod extends Required<Pick<MethodRevisions, 'legacySince' | 'modern'>> {
  readonly cache: CacheHint | undefined;
  readonly asksAbout: string | undefined;
}

/** A served method. */
export interface Method extends DeclaredMethod {
  /** `tools/call` and the like. */
  readonly name: string;
  readonly handle: MethodHandler;
}

/** Depends on the agent: agents never share the answer, and rights may change at any time. */
export const OF_AGENT: CacheHint = Object.freeze({ ttlMs: 0, cacheScope: 'private' });
/** The same for every agent while the process runs. */
export const OF_SERVER: CacheHint = Object.freeze({ ttlMs: 300_000, cacheScope: 'public' });

const METHOD = 'parley:mcp-method';

/** Makes a method of a handler (`METHOD_HANDLERS` in kernel.ts) the one that answers an MCP method. */
export function McpMethod(
  name: string,
  { legacySince = '2024-11-05', modern = true, cache, asksAbout }: MethodRevisions = {},
) {
  return <Handler extends MethodHandler>(
    _prototype: object,
    _methodName: string,
    descriptor: TypedPropertyDescriptor<Handler>,
  ): void => {
    const declared: Omit<Method, 'handle'> = { name, legacySince, modern, cache, asksAbout };
    Reflect.defineMetadata(METHOD, declared, descriptor.value as object);
  };
}

export function listMcpMethods(handler: object): Method[] {
  return [...listMethods(Object.getPrototypeOf(handler) as object)].flatMap(([, method]) => {
    const declared = Reflect.getOwnMetadata(METHOD, method) as Omit<Method, 'handle'> | undefined;
    const handle = (method as MethodHandler).bind(handler);
    return declared ? [{ ...declared, handle }] : [];
  });
}

export interface KernelOptions {
  /** The product version, which clients receive. */
  readonly version: string;
  /** Sent to clients of revision 2025-11-25 and later. Default: none. */
  readonly instructions?: string;
  /** Whether clients hear that lists change. Default true. */
  readonly announces?: boolean;
  /** Logs the internal causes of internal errors. Default: the log of the process. */
  readonly log?: WarningLog;
}

/** Injection token of `KernelOptions`. */
export const KERNEL_OPTIONS = Symbol('KERNEL_OPTIONS');

/** Entries per page of a list; a smaller catalogue is sent whole, and the frozen revisions receive each whole. */
const PAGE_SIZE = 200;

export interface Page<T> {
  readonly entries: readonly T[];
  readonly nextCursor?: string;
}

function encode(list: string, offset: number): string {
  return Buffer.from(`${list} ${offset}`, 'utf8').toString('base64url');
}

/** Accepts only a cursor that this list could have issued, so that every replica reads every cursor. */
function readOffset(list: string, cursor: unknown, total: number): number {
  if (cursor === undefined || cursor === null) return 0;
  for (let offset = PAGE_SIZE; offset < total; offset += PAGE_SIZE) {
    if (encode(list, offset) === cursor) return offset;
  }
  throw invalidParams('Invalid cursor');
}

/** @throws ProtocolError -32602 for a cursor this list never issued */
export function takePage<T>(
  list: string,
  all: readonly T[],
  { cursor }: JsonObject,
  { additions }: Dialect,
): Page<T> {
  const offset = readOffset(list, cursor, additions ? all.length : 0);
  const end = offset + PAGE_SIZE;
  if (!additions || (offset === 0 && end >= all.length)) return { entries: all };
  return {
    entries: all.slice(offset, end),
    ...(end < all.length && { nextCursor: encode(list, end) }),
  };
}
