import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, endClock, MASTER, Unauthorized } from '#core';
import { AnonymousRule, ApiKeyRule, CallerSessionRule, ImpersonatingRule } from './auth-rules.js';
import { RecordedAuthenticator, RuleAuthenticator } from './authenticator.js';
import { ExpiredCredential } from './errors.js';
import { createSlowHash, hashPlainKey, parseKeyHash } from './key-hash.js';
import { NamedRule, parseExpiry } from './named-rule.js';

const END = Date.parse('2027-01-31T00:00:00Z');
const definition = compileAgentDefinition('analyst');
const key = (text: string) => new ApiKeyRule(hashPlainKey(text), definition, MASTER);
const named = (rule: ApiKeyRule | AnonymousRule, now: () => number) =>
  new NamedRule(rule, { name: 'analyst-2027', expires: '2027-01-31' }, now);
const request = (headers: Record<string, string>) => ({
  headers: { host: 'localhost', ...headers },
  remoteAddress: '127.0.0.1',
  method: 'POST',
});
const shown = (text: string) => request({ 'x-mcp-api-key': text });

const OWNER = { userId: 'u', expiresAt: null };

describe('the end of a key', () => {
  it.each([
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2027-01-31T18:00Z', '2027-01-31T18:00:00.000Z'],
    ['2027-01-31T18:00:30+02:00', '2027-01-31T16:00:30.000Z'],
  ])('may be written %s', (text, time) => {
    expect(new Date(parseExpiry(text)).toISOString()).toBe(time);
  });

  it.each([
    '',
    'tomorrow',
    '2027',
    '2027-1-31',
    '2027-02-30',
    '2027-01-31T18:00',
    '2027-01-31T25:00Z',
    '31.01.2027',
  ])('is no %j: a time without a zone would mean another on another machine', (text) => {
    expect(() => parseExpiry(text)).toThrow(/must be a date \(2027-01-31\) or a time with its zone/);
  });

  it('is not revived by a clock that is set back, and comes no sooner once it is right again', () => {
    const before = endClock();
    const right = Date.now;
    try {
      Date.now = () => right() - 86_400_000;
      expect(endClock()).toBeGreaterThanOrEqual(before);
    } finally {
      Date.now = right;
    }
    expect(endClock() - right()).toBeLessThan(1_000);
  });
});

describe('a key with a name', () => {
  it('admits its caller under that name until its end', async () => {
    const agent = await named(key('k'), () => END - 1).recognise(shown('k'));
    expect(agent).toMatchObject({ keyName: 'analyst-2027', principal: expect.stringMatching(/^key:/) });
    expect(agent?.definition).toBe(definition);
  });

  it('does not concern callers of another key, before its end and after it', async () => {
    expect(await named(key('k'), () => END - 1).recognise(shown('other'))).toBeNull();
    expect(await named(key('k'), () => END).recognise(shown('other'))).toBeNull();
  });

  it('is refused from its end on in the words of a wrong key, also as a hash', async () => {
    for (const rule of [
      key('k'),
      new ApiKeyRule(parseKeyHash(await createSlowHash('k')), definition, MASTER),
    ]) {
      const rules = new RuleAuthenticator([named(rule, () => END), key('another')]);
      const expired = await rules.authenticate(shown('k')).catch((error: unknown) => error);
      const wrong = await rules.authenticate(shown('wrong')).catch((error: unknown) => error);
      expect(expired).toBeInstanceOf(ExpiredCredential);
      expect(wrong).toBeInstanceOf(Unauthorized);
      expect((expired as Error).message).toBe((wrong as Error).message);
      expect(rules.challengeTo(shown('k'))).toBe(rules.challengeTo(shown('wrong')));
    }
  });

  it('is recorded with its name after its end', async () => {
    const events: object[] = [];
    const rules = new RuleAuthenticator([named(key('k'), () => END)]);
    const recorded = new RecordedAuthenticator(
      () => rules,
      { recordEvent: (event) => events.push(event) },
      { assertActive: () => undefined },
    );
    await expect(recorded.authenticate(shown('k'))).rejects.toThrow('Unauthorized');
    expect(events).toEqual([
      expect.objectContaining({
        type: 'authentication',
        success: false,
        cause: 'expired',
        key_name: 'analyst-2027',
      }),
    ]);
  });

  it('is a wrong credential beside a right one after its end', async () => {
    const rules = new RuleAuthenticator([key('other'), named(key('k'), () => END)]);
    const both = request({ 'x-mcp-api-key': 'other', authorization: 'Bearer k' });
    await expect(rules.authenticate(both)).rejects.toThrow('Unauthorized');
  });

  it('looks for no session and makes none after its end', async () => {
    const asked: string[] = [];
    const owners = { ownerOfSession: (token: string) => Promise.resolve(asked.push(token) ? OWNER : null) };
    const sessions = { tokenFor: () => Promise.resolve(`r:token-${asked.push('minted')}`) };
    const ended = named(key('k'), () => END);
    const order = { kind: 'impersonate', userId: 'u', mint: true } as const;
    const withSession = request({ 'x-mcp-api-key': 'k', 'x-parse-session-token': 'r:of-u' });
    await expect(new CallerSessionRule(ended, owners).recognise(withSession)).rejects.toThrow(Unauthorized);
    await expect(new ImpersonatingRule(ended, order, sessions).recognise(shown('k'))).rejects.toThrow(
      Unauthorized,
    );
    expect(asked).toEqual([]);
  });

  it('keeps its name where its caller reads with a session', async () => {
    const owners = { ownerOfSession: () => Promise.resolve(OWNER) };
    const sessions = { tokenFor: () => Promise.resolve('r:token') };
    const order = { kind: 'impersonate', userId: 'u', mint: true } as const;
    const current = named(key('k'), () => END - 1);
    const withSession = request({ 'x-mcp-api-key': 'k', 'x-parse-session-token': 'r:of-u' });
    expect((await new CallerSessionRule(current, owners).recognise(withSession))?.keyName).toBe(
      'analyst-2027',
    );
    expect((await new ImpersonatingRule(current, order, sessions).recognise(shown('k')))?.keyName).toBe(
      'analyst-2027',
    );
  });

  it('ends anonymous access as well', async () => {
    const open = (now: number) =>
      named(new AnonymousRule(definition, MASTER), () => now).recognise(request({}));
    expect(await open(END - 1)).not.toBeNull();
    expect(await open(END)).toBeNull();
  });
});
