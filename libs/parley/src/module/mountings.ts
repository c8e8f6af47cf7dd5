import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';

type Serving = (request: IncomingMessage, response: ServerResponse) => void;

interface Mounting {
  readonly serve: Serving;
  /** Whether what lies below the path belongs to it. */
  readonly deep: boolean;
}

const OF_SERVERS = new WeakMap<Server, Mountings>();

/** What every instance of Parley in one application serves by itself; everything else goes to the application as ever. */
export class Mountings {
  private readonly names = new Set<string>();
  private readonly mounted = new Map<string, Mounting>();
  private readonly attached = new WeakSet<Server>();

  /** Of the application whose server this is. */
  static of(server: Server): Mountings {
    const known = OF_SERVERS.get(server) ?? new Mountings();
    OF_SERVERS.set(server, known);
    known.attachTo(server);
    return known;
  }

  /** @throws TypeError when another instance has the name */
  name(name: string): void {
    if (this.names.has(name))
      throw new TypeError(`two instances of Parley in one application: instance ${name}`);
    this.names.add(name);
  }

  /**
   * @param path without a trailing slash; of several that fit a request the longest is asked
   * @throws TypeError when another instance has it
   */
  mount(path: string, serve: Serving, { deep }: Pick<Mounting, 'deep'>): void {
    if (this.mounted.has(path))
      throw new TypeError(`two instances of Parley in one application: path ${path}`);
    this.mounted.set(path, { serve, deep });
  }

  /** Before the framework sees a request. Further servers of the same application share what is mounted. */
  attachTo(server: Server): void {
    if (this.attached.has(server)) return;
    this.attached.add(server);
    const others = server.listeners('request') as RequestListener[];
    server.removeAllListeners('request');
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const serve = this.at(request.url ?? '');
      if (serve) serve(request, response);
      else for (const listener of others) listener.call(server, request, response as never);
    });
  }

  private at(url: string): Serving | undefined {
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const mounting = this.mounted.get(path.slice(0, end));
      if (mounting && (mounting.deep || path.length - end < 2)) return mounting.serve;
    }
    return undefined;
  }
}
