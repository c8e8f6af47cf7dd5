/** Bytes of bodies of one address, and of all, that are read or worked on at once. */
export interface BodyLimits {
  readonly perAddress: number;
  readonly total: number;
}

const MIB = 1024 * 1024;
const DEFAULTS: BodyLimits = { perAddress: 16 * MIB, total: 64 * MIB };

/** What one request holds of them. */
export interface HeldBody {
  /** @returns false when there is no room for so many more bytes */
  grow(bytes: number): boolean;
  /** To be called once, when the request is over. */
  release(): void;
}

/**
 * Bodies of requests that are not answered yet, those that still arrive included. Nobody is known before a body is read, so
 * they are counted for remote addresses.
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
