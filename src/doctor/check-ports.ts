import { once } from 'node:events';
import { createServer } from 'node:net';
import { adviseListening, type ParleyConfig } from '#config';
import { fail, type Finding, ok, warn } from './finding.js';

/** The ports that a start listens on: each is listened on for a moment. */
export async function checkPorts({
  server,
  metrics,
}: Pick<ParleyConfig, 'server' | 'metrics'>): Promise<Finding[]> {
  return [
    await checkPort('listening.port', 'server.port', server),
    ...(metrics.port === null
      ? []
      : [await checkPort('metrics.port', 'metrics.port', { host: metrics.host, port: metrics.port })]),
  ];
}

async function checkPort(
  check: string,
  option: string,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Finding> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return ok(check, `${host}:${port} is free`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      return warn(
        check,
        `something listens on ${host}:${port} already`,
        `if that is not this service, give ${option} another port: this one does not start meanwhile`,
      );
    const found = `${host}:${port} cannot be listened on (${code ?? 'unknown fault'})`;
    return fail(check, found, adviseListening(option, code));
  } finally {
    server.close();
  }
}
