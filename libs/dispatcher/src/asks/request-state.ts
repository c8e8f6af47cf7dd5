import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';
import { isJsonObject } from '../json-object.js';
import { canonicalJson } from './canonical-json.js';

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

/** Secrets that states are sealed with; the first seals, all of them open. */
export interface StateKeys {
  secrets(): Promise<readonly [current: Buffer, ...previous: Buffer[]]>;
}

const NONCE = 12;
const TAG = 16;
const KEY_ID = 4;
/** Bytes of a state, as text. What a client answered travels in it. */
export const MAX_STATE = 262_144;

/**
 * Seals what a client keeps for us between two rounds, with AES-256-GCM: it can neither read it nor change it nor use it for
 * another call. Any replica that has the key opens it.
 */
export class RequestStateSeal {
  private readonly derived = new WeakMap<Buffer, { readonly key: Buffer; readonly id: Buffer }>();

  /** @param lifetime milliseconds until a state expires */
  constructor(
    private readonly keys: StateKeys,
    private readonly lifetime: number,
    private readonly now: () => number = Date.now,
  ) {}

  /** @returns `undefined` when it would be too large */
  async seal(content: AskedSoFar, subject: StateSubject): Promise<string | undefined> {
    const [current] = await this.keys.secrets();
    const { key, id } = this.derive(current);
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    cipher.setAAD(boundTo(subject, id));
    const state: OpenedState = { ...content, jti: randomUUID(), exp: this.now() + this.lifetime };
    const sealed = Buffer.concat([
      id,
      nonce,
      cipher.update(JSON.stringify(state), 'utf8'),
      cipher.final(),
      cipher.getAuthTag(),
    ]).toString('base64url');
    return sealed.length > MAX_STATE ? undefined : sealed;
  }

  /** @returns `undefined` for whatever is not a live state of ours for exactly this call; why is nobody's business */
  async open(text: string, subject: StateSubject): Promise<OpenedState | undefined> {
    const bytes = decoded(text);
    if (!bytes) return undefined;
    const id = bytes.subarray(0, KEY_ID);
    const found = (await this.keys.secrets()).map((s) => this.derive(s)).find((k) => k.id.equals(id));
    if (!found) return undefined;
    try {
      const nonce = bytes.subarray(KEY_ID, KEY_ID + NONCE);
      const decipher = createDecipheriv('aes-256-gcm', found.key, nonce, { authTagLength: TAG });
      decipher.setAAD(boundTo(subject, found.id));
      decipher.setAuthTag(bytes.subarray(-TAG));
      const plain = Buffer.concat([decipher.update(bytes.subarray(KEY_ID + NONCE, -TAG)), decipher.final()]);
      const state: unknown = JSON.parse(plain.toString('utf8'));
      return isLive(state, this.now()) ? state : undefined;
    } catch {
      return undefined;
    }
  }

  /** A secret of any length becomes a key of its own purpose, and a name that tells nothing of it. */
  private derive(secret: Buffer): { readonly key: Buffer; readonly id: Buffer } {
    let known = this.derived.get(secret);
    if (!known) {
      const key = Buffer.from(hkdfSync('sha256', secret, '', 'parley request state', 32));
      known = { key, id: createHash('sha256').update(key).digest().subarray(0, KEY_ID) };
      this.derived.set(secret, known);
    }
    return known;
  }
}

function boundTo(subject: StateSubject, keyId: Buffer): Buffer {
  return Buffer.concat([keyId, Buffer.from(canonicalJson(subject))]);
}

/** Only the one spelling that we write: other texts that decode to the same bytes are not ours. */
function decoded(text: string): Buffer | undefined {
  if (text.length > MAX_STATE) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length > KEY_ID + NONCE + TAG && bytes.toString('base64url') === text ? bytes : undefined;
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

/** A secret of this process alone: states end with it, and no other replica opens them. */
export function processSecret(): StateKeys {
  const secret = randomBytes(32);
  return { secrets: () => Promise.resolve([secret]) };
}
