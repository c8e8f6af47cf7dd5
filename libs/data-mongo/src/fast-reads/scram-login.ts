import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { Binary, type Document } from 'mongodb';

export const SCRAM_SHA_256 = 'SCRAM-SHA-256';

const KEY_BYTES = 32;
/** RFC 7677: a server that asks for fewer would make a stolen proof cheap to break. */
const LEAST_ITERATIONS = 4096;
/** A server that asks for more wants the processor, not a proof. */
const MOST_ITERATIONS = 1_000_000;

/** Such a password is the same before and after SASLprep (RFC 4013). */
const NEEDS_NO_SASLPREP = /^[\x20-\x7e]+$/;

const derive = promisify(pbkdf2);
const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

export interface UserAndPassword {
  readonly username: string;
  readonly password: string;
  /** The database that knows the user. */
  readonly source: string;
}

export type SendCommand = (command: Document, database: string) => Promise<Document>;

/** Logs connections in with SCRAM-SHA-256 (RFC 5802, RFC 7677). A server that does not know the password itself is not believed. */
export class ScramLogin {
  /** Deriving the key takes milliseconds: it is the same for all connections, until the password of the user changes. */
  private derived: { readonly of: string; readonly key: Promise<Buffer> } | null = null;

  constructor(private readonly user: UserAndPassword) {}

  /** Whether this class can prove the password. */
  static knows({ password }: Pick<UserAndPassword, 'password'>): boolean {
    return NEEDS_NO_SASLPREP.test(password);
  }

  /** For `hello`: the server answers with the ways in which this user may log in. */
  get asked(): string {
    return `${this.user.source}.${this.user.username}`;
  }

  /** @throws Error when the server refuses, or does not prove that it knows the password */
  async logIn(send: SendCommand): Promise<void> {
    const { source } = this.user;
    const nonce = randomBytes(24).toString('base64');
    const name = this.user.username.replaceAll('=', '=3D').replaceAll(',', '=2C');
    const clientFirst = `n=${name},r=${nonce}`;
    const start = await send(
      {
        saslStart: 1,
        mechanism: SCRAM_SHA_256,
        payload: payload(`n,,${clientFirst}`),
        options: { skipEmptyExchange: true },
      },
      source,
    );
    const serverFirst = readText(start['payload']);
    const { r: together = '', s: salt = '', i: iterations = '' } = readMembers(serverFirst);
    if (!together.startsWith(nonce) || together === nonce)
      throw new Error('the nonce of the server is not ours');
    const salted = await this.saltPassword(salt, Number(iterations));
    const clientKey = hmac(salted, 'Client Key');
    const storedKey = createHash('sha256').update(clientKey).digest();
    const withoutProof = `c=biws,r=${together}`;
    const signed = `${clientFirst},${serverFirst},${withoutProof}`;
    const signature = hmac(storedKey, signed);
    const proof = Buffer.from(clientKey.map((byte, at) => byte ^ (signature[at] as number))).toString(
      'base64',
    );
    const { conversationId } = start;
    const answer = await send(
      { saslContinue: 1, conversationId, payload: payload(`${withoutProof},p=${proof}`) },
      source,
    );
    const expected = hmac(hmac(salted, 'Server Key'), signed);
    const proven = Buffer.from(readMembers(readText(answer['payload']))['v'] ?? '', 'base64');
    if (proven.byteLength !== expected.byteLength || !timingSafeEqual(proven, expected))
      throw new Error('the server does not know the password');
    if (answer['done'] === true) return;
    await send({ saslContinue: 1, conversationId, payload: payload('') }, source);
  }

  private saltPassword(salt: string, iterations: number): Promise<Buffer> {
    if (!(iterations >= LEAST_ITERATIONS && iterations <= MOST_ITERATIONS))
      return Promise.reject(new Error('the server asks for an unusual number of iterations'));
    const of = `${iterations},${salt}`;
    if (this.derived?.of !== of) {
      const key = derive(this.user.password, Buffer.from(salt, 'base64'), iterations, KEY_BYTES, 'sha256');
      key.catch(() => (this.derived = null));
      this.derived = { of, key };
    }
    return this.derived.key;
  }
}

const payload = (text: string): Binary => new Binary(Buffer.from(text));

function readText(value: unknown): string {
  return value instanceof Binary ? Buffer.from(value.buffer).toString('utf8') : '';
}

/** `r=…,s=…,i=…` */
function readMembers(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(',').flatMap((part) => {
      const at = part.indexOf('=');
      return at === -1 ? [] : [[part.slice(0, at), part.slice(at + 1)]];
    }),
  );
}
