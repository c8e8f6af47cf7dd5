import { describe, expect, it } from 'vitest';
import { ProcessMessageBus, ProcessVersionedStore, SharedStateUnavailable, steadyClock } from '#state';
import { toPrincipal, revocationName } from '#auth';
import { processSecret, SealedText } from '#dispatcher';
import {
  fitsCookie,
  MAX_IDLE_TIME,
  MAX_SESSION_TIME,
  type OperatorSession,
  OperatorSessions,
  readCookie,
  setCookie,
} from './operator-sessions.js';

const HOST = 'parley.example';
const KEY = { authorization: 'Bearer s3cret-of-an-operator' };

function room(keys = processSecret()) {
  let at = 1_000_000;
  const [ended, revocations] = [new ProcessVersionedStore(), new ProcessVersionedStore()];
  const replica = () =>
    new OperatorSessions(keys, {
      bus: new ProcessMessageBus(),
      clock: () => at,
      endedSessions: ended,
      revocations,
    });
  return {
    keys,
    revocations,
    one: replica(),
    two: replica(),
    pass: (milliseconds: number) => (at += milliseconds),
  };
}

/** What the text is worth now: `over` also for a session that was ended. */
async function look(sessions: OperatorSessions, text: string, place: string) {
  const found = await sessions.open(text, place);
  return typeof found === 'object' && (await sessions.isOver(found)) ? 'over' : found;
}

describe('the session of an operator', () => {
  it('of a person ends when the sign-ins of the person, or of the console, are revoked', async () => {
    const issuer = 'https://issuer.example';
    for (const [by, name] of [
      ['sub', 'ada/1|x'],
      ['client', 'console'],
    ] as const) {
      const { one, two, revocations, pass } = room();
      const of = (sub: string, clientId = 'console') =>
        one.beginProven(
          { issuer, clientId, principal: toPrincipal(issuer, { sub }), name: null, proven: [] },
          MAX_SESSION_TIME,
        );
      const [ada, eve, key] = [of('ada/1|x'), of('eve', 'another'), one.begin(KEY, 'ada/1|x')];
      const canOpen = async (session: OperatorSession) =>
        typeof (await look(two, await one.seal(session, HOST), HOST));
      expect(await canOpen(ada)).toBe('object');
      await revocations.create(revocationName(issuer, by, name), { before: 1_000 }, MAX_SESSION_TIME);
      expect([await canOpen(ada), await canOpen(eve), await canOpen(key)]).toEqual([
        'string',
        'object',
        'object',
      ]);
      pass(31_000);
      expect(await canOpen(of('ada/1|x'))).toBe('object');
    }
  });

  it('is opened by any replica, and is unreadable to its holder', async () => {
    const { one, two } = room();
    const session = one.begin(KEY, 'ada');
    const sealed = await one.seal(session, HOST);
    expect(await look(two, sealed, HOST)).toEqual(session);
    expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toContain('s3cret');
  });

  it('counts under the name it was made for alone', async () => {
    const { one } = room();
    const sealed = await one.seal(one.begin(KEY, 'ada'), HOST);
    expect(await look(one, sealed, 'other.example')).toBe('forged');
  });

  it('is no other text that was sealed with the same secret, and no other text at all', async () => {
    const { keys, one } = room();
    const state = await new SealedText(keys, 'parley task agent').seal(
      JSON.stringify(one.begin(KEY, 'ada')),
      HOST,
    );
    const sealed = await one.seal(one.begin(KEY, 'ada'), HOST);
    for (const text of [state, '', 'x', sealed.slice(0, -2), `${sealed}=`, sealed.toLowerCase()])
      expect(await look(one, text, HOST)).toBe('forged');
  });

  it('ends when nobody is at the page', async () => {
    const { one, pass } = room();
    const sealed = await one.seal(one.begin(KEY, 'ada'), HOST);
    pass(MAX_IDLE_TIME - 1);
    expect(await look(one, sealed, HOST)).toMatchObject({ id: expect.any(String) });
    pass(1);
    expect(await look(one, sealed, HOST)).toBe('over');
  });

  it('is renewed while somebody is, and not for ever', async () => {
    const { one, pass } = room();
    let session = one.begin(KEY, 'ada');
    const { signedInAt } = session;
    for (let passed = 0; passed < MAX_SESSION_TIME - MAX_IDLE_TIME; passed += MAX_IDLE_TIME / 2) {
      pass(MAX_IDLE_TIME / 2);
      session = one.renewSession(session);
      expect(await one.isOver(session)).toBe(false);
    }
    expect(one.renewSession(session).expiresAt).toBe(signedInAt + MAX_SESSION_TIME);
    pass(MAX_IDLE_TIME);
    expect(await one.isOver(one.renewSession(session))).toBe(true);
  });

  it('is over on every replica once it is signed out, older and newer copies of it too', async () => {
    const { one, two, pass } = room();
    const session = one.begin(KEY, 'ada');
    const older = await one.seal(session, HOST);
    pass(1_000);
    const newer = await one.seal(one.renewSession(session), HOST);
    const other = await one.seal(one.begin(KEY, 'ada'), HOST);
    await two.end(session);
    await two.end(session);
    expect(await look(one, older, HOST)).toBe('over');
    expect(await look(one, newer, HOST)).toBe('over');
    expect(await look(one, other, HOST)).toMatchObject({ id: expect.any(String) });
  });
});

describe('ended sessions of one operator', () => {
  it('leave room for those of others: one more is refused, and none that ended counts again', async () => {
    const ended = new ProcessVersionedStore(10, undefined, undefined, { entries: 3 });
    const sessions = new OperatorSessions(processSecret(), {
      bus: new ProcessMessageBus(),
      clock: steadyClock,
      endedSessions: ended,
      revocations: new ProcessVersionedStore(),
    });
    const hers = Array.from({ length: 4 }, () => sessions.begin(KEY, 'ada'));
    for (const session of hers.slice(0, 3)) await sessions.end(session);
    await expect(sessions.end(hers[3] as never)).rejects.toBeInstanceOf(SharedStateUnavailable);
    for (const session of hers.slice(0, 3)) expect(await sessions.isOver(session)).toBe(true);
    const his = sessions.begin(KEY, 'bob');
    await sessions.end(his);
    expect(await sessions.isOver(his)).toBe(true);
  });
});

describe('the cookie', () => {
  it('cannot be read by scripts, sent by other sites or taken over plain HTTP', () => {
    const cookie = setCookie('sealed', 60, { host: HOST });
    expect(cookie).toMatch(/^__Secure-parley-console=sealed; Path=\/console; /);
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Secure', 'Max-Age=60'])
      expect(cookie.split('; ')).toContain(part);
  });

  it('is taken without TLS on this machine alone', () => {
    expect(setCookie('sealed', 60, { host: 'localhost:3001' }).split('; ')).not.toContain('Secure');
    const cookie = 'parley-console=sealed';
    expect(readCookie({ host: 'localhost:3001', cookie })).toBe('sealed');
    expect(readCookie({ host: HOST, cookie })).toBeUndefined();
  });

  it('counts only when there is one: another site of the domain may have set a second', () => {
    const cookie = '__Secure-parley-console=mine; a=b; __Secure-parley-console=theirs';
    expect(readCookie({ host: HOST, cookie })).toBeUndefined();
  });

  it('holds what every browser keeps, and no more', () => {
    expect(fitsCookie('x'.repeat(3_800))).toBe(true);
    expect(fitsCookie('x'.repeat(3_801))).toBe(false);
  });
});
