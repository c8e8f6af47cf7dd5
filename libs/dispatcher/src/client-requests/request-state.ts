import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';
import { steadyClock } from '#state';
import { canonicalJson, isJsonObject } from '../json-object.js';

/** The call that a state belongs to. Sealed with any of it different, a state cannot be opened. */
export interface StateSubject {
  readonly principal: string;
  readonly agent: string;
  readonly tenant: string | number | null;
  readonly method: string;
  /** Of the tool or prompt; the address of a resource. */
  readonly name: string;
  /** Digest of the canonical arguments. */
  readonly args: string;
}

/** What has been asked and answered so far. */
export interface AskedSoFar {
  /** What was asked last, by key: a digest of the question. */
  readonly asked: Readonly<Record<string, string>>;
  /** Earlier answers, with the digest of what they answer. */
  readonly answers: Readonly<Record<string, { readonly to: string; readonly answer: unknown }>>;
  readonly round: number;
}

export interface OpenedState extends AskedSoFar {
  /** Never used twice for different states. */
  readonly jti: string;
  /** Milliseconds since 1970. */
  readonly exp: number;
}

/** Bytes of a state, as text. What a client answered travels in it. */
export const MAX_STATE = 262_144;

/** Seals what a client keeps for us between two rounds, so that it holds for exactly one call and a limited time. */
export class RequestStateSeal {
  private readonly text: SealedText;

  /**
   * @param lifetime milliseconds until a state expires
   * @param difference milliseconds by which the clocks of those who seal and open may differ: a state holds so much longer
   */
  constructor(
    keys: StateKeys,
    private readonly lifetime: number,
    private readonly now: () => number = steadyClock,
    private readonly difference = 0,
  ) {
    this.text = new SealedText(keys, 'parley request state');
  }

  /** Milliseconds within which any replica may still open what one sealed: as long, its use has to be remembered. */
  get longest(): number {
    return this.lifetime + 3 * this.difference + 60_000;
  }

  /** @returns `undefined` when it would be too large */
  async seal(content: AskedSoFar, subject: StateSubject): Promise<string | undefined> {
    const state: OpenedState = { ...content, jti: randomUUID(), exp: this.now() + this.lifetime };
    const sealed = await this.text.seal(JSON.stringify(state), canonicalJson(subject));
    return sealed.length > MAX_STATE ? undefined : sealed;
  }

  /** @returns `undefined` for whatever is not a live state of ours for exactly this call; why is nobody's business */
  async open(text: string, subject: StateSubject): Promise<OpenedState | undefined> {
    if (text.length > MAX_STATE) return undefined;
    const plain = await this.text.open(text, canonicalJson(subject));
    if (plain === undefined) return undefined;
    const state: unknown = JSON.parse(plain);
    return isLive(state, this.now() - this.difference) ? state : undefined;
  }
}

/** What authenticates was written by us; the form is checked all the same, for states of other versions. */
function isLive(state: unknown, now: number): state is OpenedState {
  if (!isJsonObject(state)) return false;
  const { asked, answers, round, jti, exp } = state;
  return (
    isJsonObject(asked) &&
    isJsonObject(answers) &&
    typeof round === 'number' &&
    typeof jti === 'string' &&
    typeof exp === 'number' &&
    exp > now
  );
}

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
