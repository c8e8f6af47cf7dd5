import type { IncomingMessage } from 'node:http';

export type BodyReading =
  | { readonly outcome: 'read'; readonly body: Buffer }
  | { readonly outcome: 'too-large' }
  | { readonly outcome: 'too-slow' }
  | { readonly outcome: 'no-room' }
  | { readonly outcome: 'gone' };

/**
 * Reads a body of at most `limit` bytes within `timeout` milliseconds. Discards it as soon as it cannot succeed.
 * @param takes called before bytes are kept: false refuses them
 * @param onGone receives the function to call when the client disconnects
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  timeout: number,
  takes: (bytes: number) => boolean,
  onGone: (publish: () => void) => void,
): Promise<BodyReading> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    // Later calls are harmless: a promise settles once.
    const settle = (reading: BodyReading) => {
      clearTimeout(timer);
      resolve(reading);
    };
    const timer = setTimeout(() => settle({ outcome: 'too-slow' }), timeout);
    onGone(() => settle({ outcome: 'gone' }));
    if (request.destroyed) return settle({ outcome: 'gone' });
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) settle({ outcome: 'too-large' });
      else if (takes(chunk.length)) chunks.push(chunk);
      else {
        // The received bytes are useless without the rest.
        chunks.length = 0;
        settle({ outcome: 'no-room' });
      }
    });
    request.on('end', () => {
      const [only] = chunks;
      settle({ outcome: 'read', body: chunks.length === 1 && only ? only : Buffer.concat(chunks) });
    });
  });
}

/** Bytes and milliseconds spent on the rest of a refused body, so that the client can read the refusal. */
const DISCARD_BYTES = 16_777_216;
const DISCARD_TIME = 5_000;

/** Reads and discards the rest of a refused body; closes the connection when that exceeds the limits. */
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

/** Maximum bytes of bodies of one address, and of all, that are read or processed at once. */
export interface BodyLimits {
  readonly perAddress: number;
  readonly total: number;
}

const MIB = 1024 * 1024;
const DEFAULTS: BodyLimits = { perAddress: 16 * MIB, total: 64 * MIB };

/** The bytes that one request holds. */
export interface HeldBody {
  /** @returns false when there is no space for that many more bytes */
  grow(bytes: number): boolean;
  /** Must be called once, when the request is finished. */
  release(): void;
}

/**
 * Bodies of requests that are not answered yet, those that still arrive included. No caller is authenticated before a body is
 * read, so they are counted for remote addresses.
 */
export class PendingBodies {
  private readonly held = new Map<string, number>();
  private total = 0;

  constructor(private readonly limits: BodyLimits = DEFAULTS) {}

  begin(address: string): HeldBody {
    let own = 0;
    return {
      grow: (bytes) => {
        const has = this.held.get(address) ?? 0;
        if (has + bytes > this.limits.perAddress || this.total + bytes > this.limits.total) return false;
        own += bytes;
        this.total += bytes;
        this.held.set(address, has + bytes);
        return true;
      },
      release: () => {
        const left = (this.held.get(address) ?? 0) - own;
        this.total -= own;
        own = 0;
        if (left > 0) this.held.set(address, left);
        else this.held.delete(address);
      },
    };
  }
}
