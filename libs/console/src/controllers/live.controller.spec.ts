import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { Agent, compileAgentDefinition, MASTER } from '#core';
import { Observable } from 'rxjs';
import { LiveStreams } from './live.controller.js';

it('a stream whose reader left while it was being admitted takes no place', async () => {
  let announced = 0;
  const records = { watch: () => new Observable<never>(() => void (announced += 1)), close: () => undefined };
  const streams = new LiveStreams(records as never, { unread: { wrote: () => undefined } } as never);
  const agent = new Agent({
    definition: compileAgentDefinition('chief'),
    principal: 'ada',
    identity: MASTER,
  });
  const operator = { degraded: false, agent, confirm: () => Promise.resolve() };
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => void responses.push(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (let reader = 0; reader < 5; reader += 1) {
    const request = get({ port, host: '127.0.0.1', agent: false }).on('error', () => undefined);
    await expect.poll(() => responses.length).toBe(reader + 1);
    request.destroy();
    await expect.poll(() => responses[reader]?.destroyed).toBe(true);
    streams.serve(operator, responses[reader] as ServerResponse);
  }
  expect([streams.size, announced]).toEqual([0, 0]);
  server.close();
});
