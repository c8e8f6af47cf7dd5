import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { UnreadAnswers } from '#streaming';

/** What answers some paths by itself, without the framework. */
export interface Mounted {
  /** Whether a request target is its own, if only to answer with 404. */
  claims(url: string): boolean;
  /** Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** Hands each its paths before the framework sees the request; everything else goes through Nest as usual, and is read within its time as well. */
export function mountEdges(
  server: Server,
  edges: readonly Mounted[],
  unread: Pick<UnreadAnswers, 'admit' | 'wrote'>,
): void {
  const others = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const edge = edges.find((one) => one.claims(request.url ?? ''));
    if (edge) {
      void edge.handle(request, response);
      return;
    }
    void unread.admit(request, response).then((isAdmitted) => {
      if (!isAdmitted) return;
      for (const listener of others) listener.call(server, request, response as never);
      response.once('prefinish', () => unread.wrote(response));
    });
  });
}
