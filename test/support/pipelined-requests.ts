import { connect } from 'node:net';

/** Sends requests on one connection without waiting for answers. @returns their status codes, in the order of the answers */
export function pipelined(
  origin: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  count: number,
): Promise<string[]> {
  const { port, hostname } = new URL(origin);
  const lines = [`GET ${path} HTTP/1.1`, `Host: ${hostname}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.on('error', reject).setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      text += chunk;
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => String(status));
      if (statuses.length < count) return;
      socket.destroy();
      resolve(statuses);
    });
    socket.write(`${lines.join('\r\n')}\r\n\r\n`.repeat(count));
  });
}
