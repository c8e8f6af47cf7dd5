import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Mounted } from '#composition';

/** The edge below a path of the application, which it need not know. */
export class MountedEdge implements Mounted {
  constructor(
    private readonly edge: Mounted,
    /** `/api/v1`, or empty. */
    private readonly base: string,
  ) {}

  claims(url: string): boolean {
    return url.startsWith(`${this.base}/`) && this.edge.claims(url.slice(this.base.length));
  }

  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.url = (request.url ?? '').slice(this.base.length);
    return this.edge.handle(request, response);
  }
}
