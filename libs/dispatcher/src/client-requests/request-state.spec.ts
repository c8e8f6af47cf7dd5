import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type RequestStateContent,
  MAX_STATE,
  RequestStateSeal,
  type StateKeys,
  type StateSubject,
} from './request-state.js';

const SECRET = Buffer.from('a secret of the operator');
const keys = (...secrets: [Buffer, ...Buffer[]]): StateKeys => ({ secrets: () => Promise.resolve(secrets) });
const seal = new RequestStateSeal(keys(SECRET), { timeout: 60_000 });

const subject: StateSubject = {
  principal: 'key:1',
  agent: 'writer',
  tenant: 'acme',
  method: 'tools/call',
  name: 'update_object',
  args: 'digest',
};
const content: RequestStateContent = {
  asked: { approve: 'digest of the question' },
  answers: { name: { to: 'q', answer: { action: 'accept', content: { name: 'Ada' } } } },
  round: 1,
};

async function sealed(by = seal, about = subject): Promise<string> {
  const text = await by.seal(content, about);
  if (text === undefined) throw new Error('too large');
  return text;
}

describe('a request state', () => {
  it('comes back as it was sealed, on every replica that has the secret', async () => {
    const other = new RequestStateSeal(keys(Buffer.from(SECRET)), { timeout: 1 });
    expect(await other.open(await sealed(), subject)).toMatchObject(content);
  });

  it('is a different one every time', async () => {
    const [one, two] = [await sealed(), await sealed()];
    expect(one).not.toBe(two);
    const [first, second] = [await seal.open(one, subject), await seal.open(two, subject)];
    expect(first?.jti).not.toBe(second?.jti);
  });

  it('is unreadable to its holder', async () => {
    const bytes = Buffer.from(await sealed(), 'base64url').toString('latin1');
    for (const secret of ['approve', 'Ada', 'key:1', 'acme']) expect(bytes).not.toContain(secret);
  });

  it('is never honoured with any bit flipped', async () => {
    const bytes = Buffer.from(await sealed(), 'base64url');
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length * 8 - 1), async (bit) => {
        const flipped = Buffer.from(bytes);
        flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
        expect(await seal.open(flipped.toString('base64url'), subject)).toBeUndefined();
      }),
    );
  });

  it('is never honoured in another spelling, cut, lengthened or put together from two', async () => {
    const [one, two] = [await sealed(), await sealed()];
    await fc.assert(
      fc.asyncProperty(fc.nat(one.length), fc.string({ minLength: 1 }), async (at, more) => {
        const texts = [
          one.slice(0, at),
          one.slice(at),
          one.slice(0, at) + two.slice(at),
          one + more,
          more + one,
        ];
        const known = new Set([one, two]);
        for (const text of texts.filter((candidate) => !known.has(candidate)))
          expect(await seal.open(text, subject)).toBeUndefined();
      }),
    );
    expect(await seal.open(`${one}=`, subject)).toBeUndefined();
    expect(await seal.open(one.replaceAll('-', '+').replaceAll('_', '/') + '\n', subject)).toBeUndefined();
  });

  it('is never honoured for anything but the call it was minted for', async () => {
    const text = await sealed();
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(subject) as (keyof StateSubject)[])),
        fc.oneof(fc.string(), fc.integer(), fc.constant(null)),
        async (member, value) => {
          fc.pre(value !== subject[member]);
          expect(await seal.open(text, { ...subject, [member]: value } as StateSubject)).toBeUndefined();
        },
      ),
    );
  });

  it('is never honoured when values of the call have changed places', async () => {
    const text = await sealed();
    const names = Object.keys(subject) as (keyof StateSubject)[];
    for (const one of names) {
      for (const two of names.filter((name) => name !== one)) {
        const swapped = { ...subject, [one]: subject[two], [two]: subject[one] } as StateSubject;
        expect(await seal.open(text, swapped)).toBeUndefined();
      }
    }
  });

  it('is never honoured after its time', async () => {
    let now = 1_000;
    const timed = new RequestStateSeal(keys(SECRET), { timeout: 500, now: () => now });
    const text = await sealed(timed);
    now = 1_499;
    expect(await timed.open(text, subject)).toBeDefined();
    now = 1_500;
    expect(await timed.open(text, subject)).toBeUndefined();
  });

  it('is honoured under the previous secret, sealed under the current one, and refused under a forgotten one', async () => {
    const [old, fresh] = [SECRET, Buffer.from('the next secret')];
    const rotated = new RequestStateSeal(keys(fresh, old), { timeout: 60_000 });
    const forgotten = new RequestStateSeal(keys(fresh), { timeout: 60_000 });
    const text = await sealed();
    expect(await rotated.open(text, subject)).toBeDefined();
    expect(await forgotten.open(text, subject)).toBeUndefined();
    expect(await forgotten.open(await sealed(rotated), subject)).toBeDefined();
  });

  it('is not made larger than a client should carry', async () => {
    const answer = 'x'.repeat(MAX_STATE);
    expect(await seal.seal({ ...content, answers: { long: { to: 'q', answer } } }, subject)).toBeUndefined();
  });
});

describe('replicas whose clocks differ', () => {
  const FIVE_MINUTES = 300_000;
  const at = (clock: () => number, difference = FIVE_MINUTES) =>
    new RequestStateSeal(keys(SECRET), { timeout: 60_000, now: clock, clockDifference: difference });

  it.each([-FIVE_MINUTES, FIVE_MINUTES])('open what another one sealed: %i ms', async (ahead) => {
    const now = 1_800_000_000_000;
    const sealed = await at(() => now).seal(content, subject);
    expect(await at(() => now + ahead).open(sealed as string, subject)).toBeDefined();
  });

  it('remember a use for as long as any of them may open what was used', async () => {
    for (const seals of [-FIVE_MINUTES, 0, FIVE_MINUTES])
      for (const opens of [-FIVE_MINUTES, 0, FIVE_MINUTES]) {
        const now = 1_800_000_000_000;
        const sealed = await at(() => now + seals).seal(content, subject);
        const late = at(() => now + opens + at(() => now).longest);
        expect(await late.open(sealed as string, subject)).toBeUndefined();
      }
  });
});
