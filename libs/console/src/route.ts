import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Operator } from './operator-gate.js';

/** What an operator asked, with everything before it passed. */
interface ConsoleRequest {
  readonly operator: Operator;
  /** Parts of the path that the route leaves open, decoded. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Ends with the client. */
  readonly signal: AbortSignal;
}

/** JSON and its headers; `taken`: the route answers by itself. */
export type RouteAnswer = Answer | 'taken';

export interface Answer {
  /** Default 200. */
  readonly status?: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One thing that operators may ask. `*` in a path stands for one part. */
export interface Route {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** @throws NotServed, UnusableBody, SharedStateUnavailable */
  readonly answer: (asked: ConsoleRequest) => Promise<RouteAnswer>;
}

const MOST = 200;
const USUAL = 50;

/** How many entries are asked for: 50 unless told, 200 at most. */
export function limitOf(query: URLSearchParams): number {
  const asked = Number(query.get('limit') ?? USUAL);
  return Number.isSafeInteger(asked) && asked > 0 ? Math.min(asked, MOST) : USUAL;
}
