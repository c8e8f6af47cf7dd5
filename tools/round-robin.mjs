// A plain proxy that hands each request to the next target in turn, as a load balancer without stickiness does.
import { createServer, request as forward } from 'node:http';
import { listen } from './free-port.mjs';

/**
 * @param {readonly { hostname: string, port: number }[]} targets
 * @param {number} port 0 takes a free one
 */
export async function startRoundRobin(targets, port = 0) {
  let next = 0;
  const server = createServer((incoming, outgoing) => {
    const target = targets[next++ % targets.length];
    if (!target) throw new Error('there is no target');
    const { hostname, port: to } = target;
    const { method, url: path, headers } = incoming;
    const onward = forward({ hostname, port: to, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    onward.on('error', () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  server.keepAliveTimeout = 0;
  return {
    port: await listen(server, port),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
