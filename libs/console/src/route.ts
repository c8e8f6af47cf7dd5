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

type Found =
  | { readonly route: Route; readonly parts: readonly string[] }
  /** The path is served, with other verbs. */
  | { readonly verbs: readonly string[] }
  | undefined;

/** Which route serves a path. */
export class RouteTable {
  constructor(private readonly routes: readonly Route[]) {}

  find(verb: string, path: string): Found {
    const serving = this.routes.flatMap((route) => {
      const parts = partsOf(route.path, path);
      return parts ? [{ route, parts }] : [];
    });
    if (serving.length === 0) return undefined;
    return (
      serving.find(({ route }) => route.verb === verb) ?? { verbs: serving.map(({ route }) => route.verb) }
    );
  }
}

/** @returns what stands where the pattern leaves it open; null when they differ elsewhere, or it cannot be decoded */
function partsOf(pattern: string, path: string): string[] | null {
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
