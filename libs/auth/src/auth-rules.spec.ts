import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER, Unauthorized } from '#core';
import { AnonymousRule, ApiKeyRule, CallerSessionRule, ParseSessionRule } from './auth-rules.js';
import { RuleAuthenticator } from './authenticator.js';
import { createInnerCredentials } from './credentials.js';
import { hashPlainKey } from './key-hash.js';

const analyst = compileAgentDefinition('analyst');
const guest = compileAgentDefinition('guest');
const key = new ApiKeyRule(hashPlainKey('s3cret-key'), analyst, MASTER);
const anonymous = new AnonymousRule(guest, MASTER);
const from = (headers: Record<string, string>, remoteAddress = '127.0.0.1') => ({ headers, remoteAddress });

describe('an API key', () => {
  it.each([
    ['X-MCP-API-Key', { 'x-mcp-api-key': 's3cret-key' }],
    ['a bearer token', { authorization: 'Bearer s3cret-key' }],
    ['a bearer token in any case', { authorization: 'bearer s3cret-key' }],
  ])('is accepted as %s', async (_, headers) => {
    expect((await key.recognise(from(headers)))?.definition).toBe(analyst);
  });

  it.each([
    ['wrong', { 'x-mcp-api-key': 'S3cret-key' }],
    ['a prefix', { 'x-mcp-api-key': 's3cret' }],
    ['empty', { 'x-mcp-api-key': '' }],
    ['another scheme', { authorization: 'Basic s3cret-key' }],
    ['absent', {}],
  ])('is not recognised when %s', (_, headers) => {
    expect(key.recognise(from(headers))).toBeNull();
  });

  it('is never kept on the agent', () => {
    const agent = key.recognise(from({ 'x-mcp-api-key': 's3cret-key' }));
    expect(JSON.stringify(agent)).not.toContain('s3cret');
  });

  it('must not be blank', () => {
    expect(() => hashPlainKey(' ')).toThrow(/blank/);
  });

  it('gives the same principal on every request, so that limits hold', async () => {
    const ask = async () => (await key.recognise(from({ 'x-mcp-api-key': 's3cret-key' })))?.principal;
    expect(await ask()).toBe(await ask());
  });
});

describe('anonymous access', () => {
  const local = { host: 'localhost:3001' };

  it.each(['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'])('is for loopback peers: %s', (address) => {
    expect(anonymous.recognise(from(local, address))?.definition).toBe(guest);
  });

  it.each(['localhost', 'LOCALHOST:80', '127.0.0.1:3001', '[::1]:3001'])(
    'is for those that ask this machine: %s',
    (host) => {
      expect(anonymous.recognise(from({ host }))?.definition).toBe(guest);
    },
  );

  it.each([
    'parley.example',
    'localhost.example',
    '127.0.0.1.example:80',
    'user@localhost',
    'localhost:',
    '',
  ])('is refused to those that ask another name, which a proxy may have passed on: %s', (host) => {
    expect(anonymous.recognise(from({ host }))).toBeNull();
  });

  it('is refused to those that ask no host at all', () => {
    expect(anonymous.recognise(from({}))).toBeNull();
  });

  it('is for what asks within this process, with its credentials', () => {
    expect(anonymous.recognise(createInnerCredentials())?.definition).toBe(guest);
    expect(anonymous.recognise(createInnerCredentials({ 'x-mcp-api-key': 'wrong' }))).toBeNull();
  });

  it.each(['10.0.0.1', '192.168.1.2', '::ffff:10.0.0.1', '127.0.0.1.example.com', ''])(
    'is refused to %s',
    (address) => {
      expect(anonymous.recognise(from(local, address))).toBeNull();
    },
  );

  // prettier-ignore
  it.each([
    'x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-server',
    'cf-connecting-ip', 'true-client-ip', 'x-envoy-external-address', 'fly-client-ip', 'cdn-loop',
  ])('is refused to a proxy that speaks for others (%s)', (name) => {
    for (const value of ['127.0.0.1', '', 'unknown'])
      expect(anonymous.recognise(from({ ...local, [name]: value }))).toBeNull();
  });
});

describe('the rules together', () => {
  it('let the first that recognises a credential decide', async () => {
    const both = new RuleAuthenticator([key, anonymous]);
    await expect(both.authenticate(from({ 'x-mcp-api-key': 's3cret-key' }))).resolves.toMatchObject({
      definition: analyst,
    });
    await expect(both.authenticate(from({ host: 'localhost' }))).resolves.toMatchObject({
      definition: guest,
    });
  });

  it('refuse a wrong credential instead of treating it as none', async () => {
    const both = new RuleAuthenticator([key, anonymous]);
    await expect(both.authenticate(from({ 'x-mcp-api-key': 'wrong' }))).rejects.toThrow(Unauthorized);
    await expect(both.authenticate(from({ authorization: 'Basic eDp5' }))).rejects.toThrow(Unauthorized);
  });

  it('refuse everybody when there are none', async () => {
    await expect(new RuleAuthenticator([]).authenticate(from({}))).rejects.toThrow(Unauthorized);
  });
});

const users = new Map([
  ['r:s3cret-ada', 'ada'],
  ['r:bob', 'bob'],
]);
const owners = {
  ownerOfSession(token: string) {
    const userId = users.get(token);
    return Promise.resolve(userId === undefined ? null : { userId, expiresAt: null });
  },
};

describe('a Parse session', () => {
  const session = new ParseSessionRule(guest, owners);
  const keyed = new CallerSessionRule(key, owners);

  it('is the identity of the agent, and its user the principal', async () => {
    const agent = await session.recognise(from({ 'x-parse-session-token': 'r:s3cret-ada' }));
    expect(agent).toMatchObject({ definition: guest, principal: 'user:ada' });
    expect(agent?.identity).toMatchObject({ kind: 'sessionToken', token: 'r:s3cret-ada' });
    expect(agent?.usesMasterKey).toBe(false);
  });

  it('is not recognised where none is shown', async () => {
    expect(await session.recognise(from({}))).toBeNull();
  });

  it('is refused, not passed on, when nobody signed in with it', async () => {
    const rules = new RuleAuthenticator([session, anonymous]);
    await expect(rules.authenticate(from({ 'x-parse-session-token': 'r:ghost' }))).rejects.toBeInstanceOf(
      Unauthorized,
    );
  });

  it('never appears where the agent is printed', async () => {
    const agent = await session.recognise(from({ 'x-parse-session-token': 'r:s3cret-ada' }));
    expect(JSON.stringify(agent)).not.toContain('s3cret');
  });

  it('gives a caller that another rule admits its own rights', async () => {
    const headers = { 'x-mcp-api-key': 's3cret-key', 'x-parse-session-token': 'r:bob' };
    const agent = await keyed.recognise(from(headers));
    expect(agent).toMatchObject({ definition: analyst, principal: 'user:bob' });
    expect(agent?.identity).toMatchObject({ kind: 'sessionToken', token: 'r:bob' });
  });

  it('admits nobody by itself where another rule decides', async () => {
    expect(await keyed.recognise(from({ 'x-parse-session-token': 'r:s3cret-ada' }))).toBeNull();
  });

  it.each([
    ['no session', { 'x-mcp-api-key': 's3cret-key' }],
    [
      'a session nobody signed in with',
      { 'x-mcp-api-key': 's3cret-key', 'x-parse-session-token': 'r:ghost' },
    ],
  ])('is missed from a caller with a key and %s', async (_, headers) => {
    await expect(keyed.recognise(from(headers))).rejects.toBeInstanceOf(Unauthorized);
  });
});
