import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { canonicalLine } from './canonical-line.js';

/**
 * Tells whether two calls had the same arguments, and nothing more. Arguments are often short and guessable (a name, a limit),
 * so that a plain hash could be undone by trying: this one needs the key.
 */
export class ArgumentDigest {
  /** Digests under one key compare; the name of the key says which. */
  private readonly name: string;
  /** Made once: every digest would make it anew of the text. */
  private readonly key: KeyObject;

  constructor(key: Buffer | string) {
    this.key = createSecretKey(Buffer.from(key));
    this.name = createHmac('sha256', this.key).update('parley argument digest').digest('hex').slice(0, 8);
  }

  of(tool: string, args: unknown): string {
    return `${this.name}:${createHmac('sha256', this.key)
      .update(`${tool}\n${textOf(args)}`)
      .digest('hex')
      .slice(0, 32)}`;
  }
}

function textOf(args: unknown): string {
  try {
    return canonicalLine(args ?? null);
  } catch {
    // Nested too deep to be written, and so for any tool to use.
    return 'unreadable';
  }
}
