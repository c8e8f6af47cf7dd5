import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** Secrets that texts are sealed with; the first seals, all of them open. */
export abstract class StateKeys {
  abstract secrets(): Promise<readonly [current: Buffer, ...previous: Buffer[]]>;
}

const NONCE = 12;
const TAG = 16;
const KEY_ID = 4;

/**
 * Seals what somebody else keeps for us, with AES-256-GCM: they can neither read it nor change it nor pass it off as
 * something else. Any replica that has the secret opens it.
 */
export class SealedText {
  private readonly derived = new WeakMap<Buffer, { readonly key: Buffer; readonly id: Buffer }>();

  /** @param purpose texts sealed for one purpose do not open for another */
  constructor(
    private readonly keys: StateKeys,
    private readonly purpose: string,
  ) {}

  /** @param bound what it belongs to: with any other it cannot be opened */
  async seal(plain: string, bound: string): Promise<string> {
    const [current] = await this.keys.secrets();
    const { key, id } = this.derive(current);
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    cipher.setAAD(Buffer.concat([id, Buffer.from(bound)]));
    const parts = [id, nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(parts).toString('base64url');
  }

  /** @returns `undefined` for whatever is not a text of ours that belongs to exactly this; why is nobody's business */
  async open(text: string, bound: string): Promise<string | undefined> {
    const bytes = decoded(text);
    if (!bytes) return undefined;
    const id = bytes.subarray(0, KEY_ID);
    const found = (await this.keys.secrets()).map((s) => this.derive(s)).find((k) => k.id.equals(id));
    if (!found) return undefined;
    try {
      const nonce = bytes.subarray(KEY_ID, KEY_ID + NONCE);
      const decipher = createDecipheriv('aes-256-gcm', found.key, nonce, { authTagLength: TAG });
      decipher.setAAD(Buffer.concat([id, Buffer.from(bound)]));
      decipher.setAuthTag(bytes.subarray(-TAG));
      const plain = [decipher.update(bytes.subarray(KEY_ID + NONCE, -TAG)), decipher.final()];
      return Buffer.concat(plain).toString('utf8');
    } catch {
      return undefined;
    }
  }

  /** A secret of any length becomes a key of its own purpose, and a name that tells nothing of it. */
  private derive(secret: Buffer): { readonly key: Buffer; readonly id: Buffer } {
    let known = this.derived.get(secret);
    if (!known) {
      const key = Buffer.from(hkdfSync('sha256', secret, '', this.purpose, 32));
      known = { key, id: createHash('sha256').update(key).digest().subarray(0, KEY_ID) };
      this.derived.set(secret, known);
    }
    return known;
  }
}

/** Only the one spelling that we write: other texts that decode to the same bytes are not ours. */
function decoded(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length > KEY_ID + NONCE + TAG && bytes.toString('base64url') === text ? bytes : undefined;
}

/** A secret of this process alone: what it sealed ends with it, and no other replica opens it. */
export function processSecret(): StateKeys {
  const secret = randomBytes(32);
  return { secrets: () => Promise.resolve([secret]) };
}
