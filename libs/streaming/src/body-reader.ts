import type { IncomingMessage } from 'node:http';

export type BodyReading =
  | { readonly outcome: 'read'; readonly body: Buffer }
  | { readonly outcome: 'too-large' }
  | { readonly outcome: 'too-slow' }
  | { readonly outcome: 'gone' };

/** Reads a body of at most `limit` bytes within `timeout` milliseconds. Stops reading as soon as it cannot succeed. */
export function readBody(request: IncomingMessage, limit: number, timeout: number): Promise<BodyReading> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;

    const settle = (reading: BodyReading) => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      resolve(reading);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) settle({ outcome: 'too-large' });
      else chunks.push(chunk);
    };
    const onEnd = () => {
      const [only] = chunks;
      settle({ outcome: 'read', body: chunks.length === 1 && only ? only : Buffer.concat(chunks, size) });
    };
    const onGone = () => settle({ outcome: 'gone' });

    const timer = setTimeout(() => settle({ outcome: 'too-slow' }), timeout);
    if (request.readableEnded) onEnd();
    else if (request.destroyed) onGone();
    else request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

/** Bytes and milliseconds spent on the rest of a refused body, so that the client gets to read why it was refused. */
const DISCARD_BYTES = 16_777_216;
const DISCARD_TIME = 5_000;

/** Reads what is left of a refused body into nothing; cuts the connection when that takes too much. */
export function discardBody(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  let discarded = 0;
  const timer = setTimeout(() => request.destroy(), DISCARD_TIME);
  timer.unref();
  request
    .on('data', (chunk: Buffer) => {
      discarded += chunk.length;
      if (discarded > DISCARD_BYTES) request.destroy();
    })
    .once('close', () => clearTimeout(timer))
    .once('error', () => clearTimeout(timer));
  request.resume();
}
