import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { McpEdge } from '#streaming';

/** Hands the MCP path to the edge before the framework sees the request; everything else goes through Nest as usual. */
export function mountEdge(server: Server, edge: McpEdge): void {
  const others = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (edge.claims(request.url ?? '')) void edge.handle(request, response);
    else for (const listener of others) listener.call(server, request, response as never);
  });
}
