import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { SecurityHeadersMiddleware } from './console.guards.js';

it('What keeps a browser to the console is sent over HTTP/2 as well', async () => {
  const middleware = new SecurityHeadersMiddleware();
  const server = createServer((request, response) =>
    middleware.use(request as unknown as IncomingMessage, response as unknown as ServerResponse, () => {
      response.writeHead(403).end();
    }),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const [headers] = (await once(client.request({ ':path': '/console' }).end(), 'response')) as [
      Record<string, unknown>,
    ];
    expect(headers).toMatchObject({ ':status': 403, 'x-frame-options': 'DENY' });
    expect(headers['content-security-policy']).toContain("default-src 'none'");
  } finally {
    client.close();
    server.close();
  }
});
