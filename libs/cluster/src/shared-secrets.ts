import { randomBytes } from 'node:crypto';

/** Bytes of a secret. */
export const SECRET_SIZE = 32;

/** Random secrets that all replicas have in common. */
export abstract class SharedSecrets {
  /** The same for every replica that asks by this name, made by the first. @throws SharedStateUnavailable */
  abstract secret(name: string): Promise<Buffer>;
}

/** Secrets of this process: no other replica has them, and they end with it. */
export class ProcessSecrets extends SharedSecrets {
  private readonly secrets = new Map<string, Buffer>();

  secret(name: string): Promise<Buffer> {
    const known = this.secrets.get(name) ?? randomBytes(SECRET_SIZE);
    this.secrets.set(name, known);
    return Promise.resolve(known);
  }
}
