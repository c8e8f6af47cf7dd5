import type { Server } from 'node:http';
import type { HttpAdapterHost } from '@nestjs/core';
import type { Mountings } from './mountings.js';

/** Of Fastify, as far as it is needed here; its types may not be installed. */
interface Fastify {
  addHook(name: 'onListen', hook: (done: () => void) => void): unknown;
  addresses(): readonly unknown[];
}

interface Listening {
  readonly adapter: HttpAdapterHost['httpAdapter'];
  readonly mountings: Mountings;
  readonly log: { error(line: string): void };
}

/** For a name with several addresses, as `localhost` may be, Fastify opens a server for each when it listens. */
export function followFurtherServers({ adapter, mountings, log }: Listening): void {
  if (adapter.getType() !== 'fastify') return;
  const fastify = adapter.getInstance<Fastify>();
  fastify.addHook('onListen', (done) => {
    const further = furtherServersOf(fastify);
    for (const server of further) mountings.attachTo(server);
    if (fastify.addresses().length > further.length + 1)
      log.error(
        'the application listens at addresses where MCP is not served: give one address to listen on',
      );
    done();
  });
}

/** Fastify keeps them under a symbol that only its description tells. */
function furtherServersOf(fastify: object): readonly Server[] {
  const key = Object.getOwnPropertySymbols(fastify).find(
    ({ description }) => description === 'fastify.serverBindings',
  );
  return key === undefined ? [] : (Reflect.get(fastify, key) as Server[]);
}
