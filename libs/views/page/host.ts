/** The context that a host sends to its view (MCP Apps 2026-01-26). */
export interface HostContext {
  readonly theme?: unknown;
  readonly styles?: { readonly variables?: Readonly<Record<string, unknown>> };
}

interface Received {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
}

type Listener = (params: unknown) => void;

const PROTOCOL = '2026-01-26';

/** The messages with the host, between windows. Messages of any window except the parent are ignored. */
export class Host {
  private readonly listeners = new Map<string, Listener>();
  private readonly waiting = new Map<number, Listener>();
  private last = 0;

  constructor() {
    addEventListener('message', ({ source, data }: MessageEvent<unknown>) => {
      if (source === window.parent && data !== null && typeof data === 'object') this.receive(data);
    });
  }

  on(method: string, listener: Listener): this {
    this.listeners.set(method, listener);
    return this;
  }

  /** Opens the connection. @returns the host's context */
  open(name: string): Promise<HostContext> {
    return new Promise((resolve) => {
      const params = {
        appInfo: { name, version: '1' },
        appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
        protocolVersion: PROTOCOL,
      };
      this.request('ui/initialize', params, (result) => {
        this.say('ui/notifications/initialized', {});
        resolve((result as { hostContext?: HostContext } | undefined)?.hostContext ?? {});
      });
    });
  }

  say(method: string, params: object): void {
    this.send({ method, params });
  }

  private request(method: string, params: object, answered: Listener): void {
    const id = (this.last += 1);
    this.waiting.set(id, answered);
    this.send({ id, method, params });
  }

  private receive({ id, method, params, result }: Received): void {
    if (typeof method === 'string') {
      this.listeners.get(method)?.(params);
      // A view that only displays data confirms every request.
      if (id !== undefined) this.send({ id, result: {} });
      return;
    }
    const answered = this.waiting.get(id as number);
    this.waiting.delete(id as number);
    answered?.(result);
  }

  // A sandboxed view cannot read the host's origin; no message is secret.
  private send(message: object): void {
    window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
  }
}
