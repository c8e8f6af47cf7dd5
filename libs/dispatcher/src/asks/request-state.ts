import { randomUUID } from 'node:crypto';
import { steadyClock } from '#cluster';
import { isJsonObject } from '../json-object.js';
import { canonicalJson } from './canonical-json.js';
import { SealedText, type StateKeys } from './sealed-text.js';

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
