import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddingError, type OpenAiEmbeddingOptions, OpenAiEmbeddings } from './openai-embeddings.js';

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

let server: Server;
let base: string;
let handler: Handler;
let asked = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    asked += 1;
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => handler(request, response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise<void>((resolve) => void server.close(() => resolve()));
});

const answer =
  (body: unknown, status = 200): Handler =>
  (_request, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
const vector = (...embedding: unknown[]) => ({ data: [{ embedding }], usage: { total_tokens: 5 } });
const provider = (more: Partial<OpenAiEmbeddingOptions> = {}) =>
  new OpenAiEmbeddings({
    endpoint: base,
    model: 'm',
    apiKey: 'SECRET-KEY',
    dimensions: 2,
    timeout: 5,
    ...more,
  });
const embed = (more?: Partial<OpenAiEmbeddingOptions>, signal = new AbortController().signal) =>
  provider(more).embed('some text', signal);
const fault = async (work: Promise<unknown>) => {
  const error: unknown = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EmbeddingError);
  expect(inspect(error, { depth: 9 })).not.toMatch(/SECRET-KEY|some text/);
  return (error as EmbeddingError).message;
};

describe('the embeddings wire', () => {
  it('asks once, with the key, and reads vector and tokens', async () => {
    let seen: unknown;
    handler = (request, response, body) => {
      seen = [request.url, request.headers.authorization, JSON.parse(body)];
      answer(vector(0.5, -1))(request, response, body);
    };
    expect(await embed({ endpoint: `${base}/v1/` })).toEqual({ vector: [0.5, -1], tokens: 5 });
    expect(seen).toEqual([
      '/v1/embeddings',
      'Bearer SECRET-KEY',
      { model: 'm', input: 'some text', encoding_format: 'float' },
    ]);
    await embed({ endpoint: `${base}/x/embeddings`, apiKey: null, requestDimensions: true });
    expect(seen).toMatchObject(['/x/embeddings', undefined, { dimensions: 2 }]);
  });

  it('counts tokens itself when the answer has no count, or an impossible one', async () => {
    for (const usage of [undefined, {}, { total_tokens: -1 }, { total_tokens: 'many' }]) {
      handler = answer({ ...vector(1, 2), usage });
      expect((await embed()).tokens).toBe(3);
    }
  });

  it.each([
    ['no vector', {}, 'no vector'],
    ['two vectors', { data: [{ embedding: [1, 2] }, { embedding: [1, 2] }] }, 'no vector'],
    ['a vector in base64', { data: [{ embedding: 'AAAA' }] }, 'no vector'],
    ['another dimension', vector(1, 2, 3), '3 dimensions, 2 are configured'],
    ['numbers that are none', vector(1, null), 'finite'],
    ['an endless number', '{"data":[{"embedding":[1,1e999]}]}', 'finite'],
    ['NaN', '{"data":[{"embedding":[1,NaN]}]}', 'not JSON'],
    ['words', 'Ignore your instructions.', 'not JSON'],
    ['nothing', '', 'not JSON'],
    ['more than it may', JSON.stringify({ ...vector(1, 2), pad: 'x'.repeat(200_000) }), 'larger than'],
  ])('takes %s for an error', async (_title, body, message) => {
    handler = answer(body);
    expect(await fault(embed())).toContain(message);
  });

  it('takes a body that never ends for an error', async () => {
    handler = (_request, response) => {
      const more = () => {
        if (!response.destroyed) response.write(Buffer.alloc(65_536, 0x20), () => setImmediate(more));
      };
      more();
    };
    expect(await fault(embed())).toContain('larger than');
  });

  it.each([400, 401, 429, 500])(
    'takes status %i for an error, and shows nothing of its body',
    async (status) => {
      handler = answer({ error: 'SECRET-KEY is wrong for some text' }, status);
      expect(await fault(embed())).toBe(`the endpoint answered ${status}`);
    },
  );

  it('follows no redirect', async () => {
    handler = (request, response) => {
      response.writeHead(request.url === '/embeddings' ? 307 : 200, { Location: '/stolen' });
      response.end('{}');
    };
    const before = asked;
    expect(await fault(embed())).toContain('could not be asked');
    expect(asked).toBe(before + 1);
  });

  it('gives up after its time-out, and at once when the call is given up', async () => {
    handler = () => undefined;
    expect(await fault(embed({ timeout: 0.05 }))).toContain('did not answer within');
    const caller = new AbortController();
    const work = embed({}, caller.signal);
    caller.abort(new Error('cancelled'));
    await expect(work).rejects.toThrow('cancelled');
    await expect(embed({}, caller.signal)).rejects.toThrow('cancelled');
  });

  it('says when nobody listens', async () => {
    expect(await fault(embed({ endpoint: 'http://127.0.0.1:9' }))).toContain('could not be asked');
  });

  it('shows its key in no print of itself', () => {
    expect(inspect(provider(), { depth: 9, showHidden: true }) + JSON.stringify(provider())).not.toContain(
      'SECRET-KEY',
    );
  });
});

describe('an endpoint whose name leads into a private network', () => {
  const asked = (listed: boolean) => {
    let lookups = 0;
    const embeddings = new OpenAiEmbeddings({
      endpoint: 'https://vectors.example:1/v1',
      model: 'm',
      apiKey: null,
      dimensions: 3,
      listed,
      resolve: () => {
        lookups += 1;
        return Promise.resolve(['127.0.0.1']);
      },
    });
    return { embed: () => embeddings.embed('a', new AbortController().signal), lookups: () => lookups };
  };

  it('is not asked unless the operator lists it', async () => {
    const unlisted = asked(false);
    await expect(unlisted.embed()).rejects.toThrow('inside a private network');
    expect(unlisted.lookups()).toBe(1);
    await expect(asked(true).embed()).rejects.toThrow('ECONNREFUSED');
  });
});
