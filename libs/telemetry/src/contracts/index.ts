import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

type Value = Readonly<Record<string, unknown>>;

interface Pair {
  readonly key: string;
  readonly value: Value;
}

interface Wire {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Pair[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<CollectedSpan, 'attributes' | 'events' | 'resource'> & {
        readonly attributes: readonly Pair[];
        readonly events: readonly { readonly name: string; readonly attributes: readonly Pair[] }[];
      })[];
    }[];
  }[];
}

interface CollectedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code: number };
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly {
    readonly name: string;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
  readonly resource: Readonly<Record<string, unknown>>;
}

const plain = (pairs: readonly Pair[] = []) =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));

/** A collector for OTLP as JSON over HTTP that keeps what it receives. */
export async function startCollector() {
  const spans: CollectedSpan[] = [];
  const raw: string[] = [];
  const headers: Readonly<Record<string, unknown>>[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      raw.push(text);
      headers.push(request.headers);
      for (const { resource, scopeSpans } of (JSON.parse(text) as Wire).resourceSpans)
        for (const span of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({
            ...span,
            resource: plain(resource.attributes),
            attributes: plain(span.attributes),
            events: span.events.map(({ name, attributes }) => ({ name, attributes: plain(attributes) })),
          });
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    /** All received bodies as text. */
    text: () => raw.join('\n'),
    headers,
    named: (name: string, traceId?: string) =>
      spans.filter((span) => span.name === name && (traceId === undefined || span.traceId === traceId)),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export type Collector = Awaited<ReturnType<typeof startCollector>>;
