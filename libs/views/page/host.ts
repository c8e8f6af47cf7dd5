/** The context that a host sends to its view (MCP Apps 2026-01-26). */
export interface HostContext {
  readonly theme?: unknown;
  /** BCP 47. */
  readonly locale?: unknown;
  /** IANA. */
  readonly timeZone?: unknown;
  readonly containerDimensions?: { readonly height?: unknown; readonly maxHeight?: unknown };
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
  private saves = false;

  constructor() {
    addEventListener('message', ({ source, data }: MessageEvent<unknown>) => {
      if (source === window.parent && data !== null && typeof data === 'object') this.receive(data);
    });
  }

  on(method: string, listener: Listener): this {
    this.listeners.set(method, listener);
    return this;
  }

  /** Whether the host takes files for the reader (`ui/download-file`). */
  get savesFiles(): boolean {
    return this.saves;
  }

  /**
   * Opens the connection.
   * @param apply receives the host's context, before the host sends a result
   */
  async open(name: string, apply: (context: HostContext) => void): Promise<void> {
    const answer = (await this.request('ui/initialize', {
      appInfo: { name, version: '1' },
      appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
      protocolVersion: PROTOCOL,
    })) as { hostContext?: HostContext; hostCapabilities?: { downloadFile?: unknown } } | undefined;
    this.saves = Boolean(answer?.hostCapabilities?.downloadFile);
    apply(answer?.hostContext ?? {});
    this.say('ui/notifications/initialized', {});
  }

  say(method: string, params: object): void {
    this.send({ method, params });
  }

  /** @returns the result, undefined where the host answers with an error */
  request(method: string, params: object): Promise<unknown> {
    const id = (this.last += 1);
    this.send({ id, method, params });
    return new Promise((resolve) => this.waiting.set(id, resolve));
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
