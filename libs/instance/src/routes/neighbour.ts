import type { IncomingMessage, ServerResponse } from 'node:http';

/** A route beside MCP, on plain Node requests: the same behind any framework. */
export interface Neighbour {
  /** `/approvals`; what lies below is its own as well. */
  readonly path: string;
  /**
   * Answers one request. What it throws is a fault of ours.
   * @param below what follows `path`, without a query: empty, or from a slash on
   */
  answer(request: IncomingMessage, response: ServerResponse, below: string): Promise<void>;
}

type Headers = Readonly<Record<string, string>>;

/** To HEAD Node sends no body by itself. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Headers = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

export function notFound(response: ServerResponse): void {
  sendJson(response, 404, { error: 'Not Found' });
}

export const isReading = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';

/** @param verbs that the place has */
export function wrongVerb(response: ServerResponse, verbs: string): void {
  sendJson(response, 405, { error: 'Method Not Allowed' }, { Allow: verbs });
}
