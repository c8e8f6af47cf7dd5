import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServiceMetrics } from './service-metrics.js';

export interface MetricsAddress {
  /** 0 selects a free port. */
  readonly port: number;
  readonly host: string;
}

/** What a scrape is answered with. */
export type MetricsSource = Pick<ServiceMetrics, 'text' | 'contentType'>;

/** Milliseconds. Scrapes within this time share one reading. */
const FRESH = 250;

const LOOPBACK_HOST = /^(127\.0\.0\.1|::1|localhost)$/;
const LOOPBACK_NAME = /^(127\.0\.0\.1|\[::1\]|localhost)(:\d{1,5})?$/i;

/** Serves `GET /metrics` only, on a separate port that is not for callers. */
export class MetricsListener {
  private reading: Promise<string> | null = null;

  private constructor(
    private readonly server: Server,
    private readonly metrics: MetricsSource,
    private readonly loopback: boolean,
  ) {
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      void this.answer(request, response);
    });
  }

  /** @throws the socket's error when the address cannot be used */
  static async open(metrics: MetricsSource, { port, host }: MetricsAddress): Promise<MetricsListener> {
    const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000, maxHeaderSize: 8_192 });
    server.maxConnections = 32;
    server.maxRequestsPerSocket = 1_000;
    const listener = new MetricsListener(server, metrics, LOOPBACK_HOST.test(host));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
    // An error of a socket must not end the process.
    server.on('error', () => undefined);
    return listener;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '', headers } = request;
    // A request from a web page on this machine would have another host name.
    if (this.loopback && !LOOPBACK_NAME.test(headers.host ?? '')) return refuse(response, 403);
    if (url.split('?', 1)[0] !== '/metrics') return refuse(response, 404);
    if (method !== 'GET' && method !== 'HEAD') return refuse(response, 405, { Allow: 'GET, HEAD' });
    try {
      const text = await this.text();
      const fields = { 'Content-Type': this.metrics.contentType, 'Cache-Control': 'no-store' };
      response.writeHead(200, { ...fields, 'Content-Length': Buffer.byteLength(text) });
      response.end(method === 'HEAD' ? undefined : text);
    } catch {
      refuse(response, 500);
    }
  }

  private text(): Promise<string> {
    if (!this.reading) {
      this.reading = this.metrics.text();
      const forget = () => (this.reading = null);
      this.reading.then(() => setTimeout(forget, FRESH).unref(), forget);
    }
    return this.reading;
  }
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { ...headers, 'Content-Length': 0, Connection: 'close' });
  response.end();
}
