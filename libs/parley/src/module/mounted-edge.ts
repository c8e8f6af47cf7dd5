import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Mounted } from '#composition';

/** The edge below a path of the application, which it need not know. */
export class MountedEdge implements Mounted {
  constructor(
    private readonly edge: Mounted,
    /** `/api/v1`, or empty. */
    private readonly base: string,
    /** The only path of the edge that is served; null: all. */
    private readonly only: string | null,
  ) {}

  claims(url: string): boolean {
    if (!url.startsWith(`${this.base}/`)) return false;
    const own = url.slice(this.base.length);
    const [path = ''] = own.split('?', 1);
    if (this.only !== null && path !== this.only && !path.startsWith(`${this.only}/`)) return false;
    return this.edge.claims(own);
  }

  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.url = (request.url ?? '').slice(this.base.length);
    return this.edge.handle(request, response);
  }
}
