import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Operator } from './operator-gate.js';

/** An authenticated request. */
interface ConsoleRequest {
  readonly operator: Operator;
  /** Decoded segments of the path at the positions of `*`. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** A JSON response, or `taken` when the route writes the response itself. */
export type RouteAnswer = Answer | 'taken';

export interface Answer {
  /** Default 200. */
  readonly status?: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A route of the console API. `*` matches one segment of the path. */
export interface Route {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** @throws NotServed, UnusableBody, SharedStateUnavailable */
  readonly answer: (asked: ConsoleRequest) => Promise<RouteAnswer>;
}

const MOST = 200;
const USUAL = 50;

/** The `limit` of a query: 50 by default, at most 200. */
export function limitOf(query: URLSearchParams): number {
  const asked = Number(query.get('limit') ?? USUAL);
  return Number.isSafeInteger(asked) && asked > 0 ? Math.min(asked, MOST) : USUAL;
}

type Found =
  | { readonly route: Route; readonly segments: readonly string[] }
  /** The path exists with other methods. */
  | { readonly verbs: readonly string[] }
  | undefined;

/** Finds the route of a path and method. */
export class RouteTable {
  constructor(private readonly routes: readonly Route[]) {}

  find(verb: string, path: string): Found {
    const serving = this.routes.flatMap((route) => {
      const segments = segmentsOf(route.path, path);
      return segments ? [{ route, segments }] : [];
    });
    if (serving.length === 0) return undefined;
    return (
      serving.find(({ route }) => route.verb === verb) ?? { verbs: serving.map(({ route }) => route.verb) }
    );
  }
}

/** @returns the segments at `*`; null when the path does not match or cannot be decoded */
function segmentsOf(pattern: string, path: string): string[] | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const open: string[] = [];
  for (const [at, part] of wanted.entries()) {
    const text = given[at] as string;
    if (part !== '*') {
      if (part !== text) return null;
      continue;
    }
    const decoded = decode(text);
    if (decoded === null || decoded === '') return null;
    open.push(decoded);
  }
  return open;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
