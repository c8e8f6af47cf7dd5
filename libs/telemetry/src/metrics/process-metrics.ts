import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServiceMetrics } from './service-metrics.js';

/** How processes of one service talk to each other: the channel of `node:cluster`. */
export interface ProcessChannel {
  send(message: object): void;
  /** @returns a function that stops it */
  onMessage(receive: (message: object) => void): () => void;
}

/** `process` in a process that another one started, or what that one holds of it. */
interface ProcessEnd {
  send?: ((message: object) => unknown) | undefined;
  on(event: 'message', receive: (message: object) => void): unknown;
  off(event: 'message', receive: (message: object) => void): unknown;
}

export function channelTo(end: ProcessEnd): ProcessChannel {
  return {
    send: (message) => void end.send?.(message),
    onMessage: (receive) => {
      end.on('message', receive);
      return () => void end.off('message', receive);
    },
  };
}

/** From a process to the first one, and back: the metrics of all. From the first one to each, and back: its own. */
type MetricsMessage =
  | { readonly parley: 'scrape' | 'metrics'; readonly id: number }
  | { readonly parley: 'scraped' | 'measured'; readonly id: number; readonly text: string };

/** Milliseconds for all processes; the metrics of one that does not answer are left out. */
const MAX_COLLECT_TIME = 2_000;

const isMetricsMessage = (message: object): message is MetricsMessage =>
  'parley' in message && 'id' in message && typeof message.id === 'number';

let lastId = 0;

/** Sends a message and waits for the answer that carries its id; null when none comes in time. */
function collectAnswers(
  channel: ProcessChannel,
  question: 'scrape' | 'metrics',
  answer: 'scraped' | 'measured',
  timeout: number,
): Promise<string | null> {
  const id = (lastId += 1);
  return new Promise((resolve) => {
    const end = (text: string | null) => {
      clearTimeout(timer);
      stop();
      resolve(text);
    };
    const timer = setTimeout(() => end(null), timeout);
    const stop = channel.onMessage((message) => {
      if (isMetricsMessage(message) && message.parley === answer && message.id === id && 'text' in message)
        end(message.text);
    });
    channel.send({ parley: question, id });
  });
}

/** In one of several processes: answers for its own metrics; a scrape gets those of all. */
export function metricsOfAll(own: MetricsSource, first: ProcessChannel): MetricsSource {
  first.onMessage((message) => {
    if (!isMetricsMessage(message) || message.parley !== 'metrics') return;
    void own.text().then((text) => first.send({ parley: 'measured', id: message.id, text }));
  });
  return {
    contentType: own.contentType,
    text: async () => (await collectAnswers(first, 'scrape', 'scraped', MAX_COLLECT_TIME * 2)) ?? own.text(),
  };
}

/** In the first process: answers scrapes of one process with the metrics of all. @param all those that run now */
export function gatherMetrics(from: ProcessChannel, all: () => readonly ProcessChannel[]): void {
  from.onMessage((message) => {
    if (!isMetricsMessage(message) || message.parley !== 'scrape') return;
    const texts = all().map((each) => collectAnswers(each, 'metrics', 'measured', MAX_COLLECT_TIME));
    void Promise.all(texts).then((found) => {
      const text = joinMetrics(found.filter((each) => each !== null));
      from.send({ parley: 'scraped', id: message.id, text });
    });
  });
}

/** Several expositions as one: each metric once, with the samples of all. */
export function joinMetrics(texts: readonly string[]): string {
  const metrics = new Map<string, { readonly head: string[]; readonly samples: string[] }>();
  for (const text of texts) {
    let current: { readonly head: string[]; readonly samples: string[] } | undefined;
    for (const line of text.split('\n')) {
      const [, name] = /^# HELP (\S+)/.exec(line) ?? [];
      if (name !== undefined) {
        current = metrics.get(name) ?? { head: [], samples: [] };
        metrics.set(name, current);
      }
      if (line === '' || !current) continue;
      if (!line.startsWith('#')) current.samples.push(line);
      else if (!current.head.includes(line)) current.head.push(line);
    }
  }
  return [...metrics.values()].map(({ head, samples }) => `${[...head, ...samples].join('\n')}\n`).join('\n');
}

export interface MetricsAddress {
  /** 0 selects a free port. */
  readonly port: number;
  readonly host: string;
}

/** What a scrape is answered with. */
export type MetricsSource = Pick<ServiceMetrics, 'text' | 'contentType'>;

/** Milliseconds. Scrapes within this time share one reading. */
const MAX_SAMPLE_AGE = 250;

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
      this.reading.then(() => setTimeout(forget, MAX_SAMPLE_AGE).unref(), forget);
    }
    return this.reading;
  }
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { ...headers, 'Content-Length': 0, Connection: 'close' });
  response.end();
}
