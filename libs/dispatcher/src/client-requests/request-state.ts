import { Inject, Injectable } from '@nestjs/common';
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';
import { type Owner, isJsonObject } from '#core';
import { SharedState, steadyClock } from '#state';
import { canonicalJson } from '../protocol.js';

/** The call that a state belongs to. A state sealed for any other value cannot be opened. */
export interface StateSubject extends Owner {
  readonly method: string;
  /** The name of the tool or prompt, or the address of a resource. */
  readonly name: string;
  /** Digest of the canonical arguments. */
  readonly args: string;
}

/** The requests and answers so far. */
export interface RequestStateContent {
  /** The open requests, by key: a digest of the request. */
  readonly asked: Readonly<Record<string, string>>;
  /** Earlier answers. */
  readonly answers: Readonly<Record<string, KeptAnswer>>;
  readonly round: number;
}

export interface KeptAnswer {
  /** Digest of its request. */
  readonly to: string;
  readonly answer: unknown;
  /** It is the decision on what runs, for one run. */
  readonly once?: true;
}

export interface OpenedState extends RequestStateContent {
  /** Never used twice for different states. */
  readonly jti: string;
  /** Milliseconds since 1970. */
  readonly exp: number;
}

/** Maximum size of a state as text, in bytes. It contains the client's answers. */
export const MAX_STATE = 262_144;

/** Secrets that seal texts. The first one seals; all of them open. */
export abstract class StateKeys {
  abstract secrets(): Promise<readonly [current: Buffer, ...previous: Buffer[]]>;
}

/** Injection token of the operator's keys, the current one first; null: one that all replicas share. */
export const OPERATOR_KEYS = Symbol('keys of the operator');

/** The keys of the operator, or else a secret that all replicas share. */
@Injectable()
export class ConfiguredStateKeys extends StateKeys {
  private readonly keys: readonly [Buffer, ...Buffer[]] | null;

  constructor(
    @Inject(OPERATOR_KEYS) keys: readonly [string, ...string[]] | null,
    @Inject(SharedState) private readonly state: Pick<SharedState, 'secrets'>,
  ) {
    super();
    this.keys = keys && [Buffer.from(keys[0]), ...keys.slice(1).map((key) => Buffer.from(key))];
  }

  async secrets(): Promise<readonly [current: Buffer, ...previous: Buffer[]]> {
    return this.keys ?? [await this.state.secrets.secret('request-state')];
  }
}

/** Injection token of `ClientAnswerOptions`. */
export const CLIENT_ANSWER_OPTIONS = Symbol('options of client answers');

export interface ClientAnswerOptions {
  /** Milliseconds that a client has to answer and that a state is valid. */
  readonly timeout: number;
  /** Milliseconds by which the clocks of replicas may differ: a state stays valid that much longer. Default 0. */
  readonly clockDifference?: number;
  /** Default: the clock of the process. */
  readonly now?: () => number;
}

/**
 * Seals the state that a client stores between two rounds, so that it is valid for exactly one call and a limited time.
 */
@Injectable()
export class RequestStateSeal {
  private readonly text: SealedText;

  private readonly lifetime: number;
  private readonly now: () => number;
  private readonly difference: number;

  constructor(
    @Inject(StateKeys) keys: StateKeys,
    @Inject(CLIENT_ANSWER_OPTIONS)
    { timeout, now = steadyClock, clockDifference = 0 }: ClientAnswerOptions,
  ) {
    this.lifetime = timeout;
    this.now = now;
    this.difference = clockDifference;
    this.text = new SealedText(keys, 'parley request state');
  }

  /** Milliseconds within which any replica may open a sealed state. Its use must be remembered for as long. */
  get longest(): number {
    return this.lifetime + 3 * this.difference + 60_000;
  }

  /** @returns `undefined` when it would be too large */
  async seal(content: RequestStateContent, subject: StateSubject): Promise<string | undefined> {
    const state: OpenedState = { ...content, jti: randomUUID(), exp: this.now() + this.lifetime };
    const sealed = await this.text.seal(JSON.stringify(state), canonicalJson(subject));
    return sealed.length > MAX_STATE ? undefined : sealed;
  }

  /** @returns `undefined` for any text except a live state for exactly this call; the reason is not reported */
  async open(text: string, subject: StateSubject): Promise<OpenedState | undefined> {
    if (text.length > MAX_STATE) return undefined;
    const plain = await this.text.open(text, canonicalJson(subject));
    if (plain === undefined) return undefined;
    const state: unknown = JSON.parse(plain);
    return isLive(state, this.now() - this.difference) ? state : undefined;
  }
}

/**
 * Authenticated content was written by this service. The form is still checked, because other versions wrote other
 * states.
 */
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

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID = 4;

/**
 * Seals a text that a client or store keeps, with AES-256-GCM: the holder can neither read nor change it nor use it for
 * another purpose. Any replica with the secret opens it.
 */
export class SealedText {
  private readonly derived = new WeakMap<Buffer, { readonly key: Buffer; readonly id: Buffer }>();

  /** @param purpose a text sealed for one purpose does not open for another */
  constructor(
    private readonly keys: StateKeys,
    private readonly purpose: string,
  ) {}

  /** @param bound the subject of the text: it opens for no other */
  async seal(plain: string, bound: string): Promise<string> {
    const [current] = await this.keys.secrets();
    const { key, id } = this.derive(current);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    cipher.setAAD(Buffer.concat([id, Buffer.from(bound)]));
    const parts = [id, nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(parts).toString('base64url');
  }

  /** @returns `undefined` for any text that was not sealed for exactly this subject; the reason is not reported */
  async open(text: string, bound: string): Promise<string | undefined> {
    const bytes = decodeText(text);
    if (!bytes) return undefined;
    const id = bytes.subarray(0, KEY_ID);
    const found = (await this.keys.secrets()).map((s) => this.derive(s)).find((k) => k.id.equals(id));
    if (!found) return undefined;
    try {
      const nonce = bytes.subarray(KEY_ID, KEY_ID + NONCE_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', found.key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.concat([id, Buffer.from(bound)]));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const plain = [decipher.update(bytes.subarray(KEY_ID + NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      return Buffer.concat(plain).toString('utf8');
    } catch {
      return undefined;
    }
  }

  /** Derives a key per purpose from a secret of any length, and a name that reveals nothing of the secret. */
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

/** Accepts only the canonical encoding: another text that decodes to the same bytes is refused. */
function decodeText(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length > KEY_ID + NONCE_BYTES + TAG_BYTES && bytes.toString('base64url') === text
    ? bytes
    : undefined;
}

/** A random secret of this process: its sealed texts end with the process, and no other replica opens them. */
export function processSecret(): StateKeys {
  const secret = randomBytes(32);
  return { secrets: () => Promise.resolve([secret]) };
}
