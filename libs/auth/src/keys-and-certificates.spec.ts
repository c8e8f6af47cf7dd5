import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER } from '#core';
import { AnonymousRule, ApiKeyRule, ClientCertificateRule } from './auth-rules.js';
import { createSlowHash, hashPlainKey, newKey, parseKeyHash } from './key-hash.js';
import { TrustedNetworks } from './credentials.js';
import { RuleAuthenticator } from './authenticator.js';

const definition = compileAgentDefinition('reports');
const from = (headers: Record<string, string>, remoteAddress = '10.1.2.3') => ({ headers, remoteAddress });
const withKey = (key: string) => from({ 'x-mcp-api-key': key });

describe('a key of which only a hash is known', () => {
  it('is recognised, and no other', async () => {
    const { key, hash } = newKey();
    const rule = new ApiKeyRule(parseKeyHash(hash), definition, MASTER);
    expect((await rule.recognise(withKey(key)))?.definition).toBe(definition);
    for (const other of [newKey().key, key.slice(1), `${key} `, hash, hash.slice('sha256:'.length), ''])
      expect(await rule.recognise(withKey(other))).toBeNull();
  });

  it('that a person chose is recognised as well, and no other', async () => {
    const rule = new ApiKeyRule(
      parseKeyHash(await createSlowHash('correct-horse-battery')),
      definition,
      MASTER,
    );
    for (let again = 0; again < 2; again++) {
      expect((await rule.recognise(withKey('correct-horse-battery')))?.definition).toBe(definition);
      expect(await rule.recognise(withKey('correct-horse-batterz'))).toBeNull();
    }
  });

  it('stays the same principal when it moves from clear to hash', async () => {
    const { key, hash } = newKey();
    const clear = await new ApiKeyRule(hashPlainKey(key), definition, MASTER).recognise(withKey(key));
    const hashed = await new ApiKeyRule(parseKeyHash(hash), definition, MASTER).recognise(withKey(key));
    expect(hashed?.principal).toBe(clear?.principal);
  });

  it('is not compared slowly with signed tokens, which are another rule’s business', async () => {
    const token = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln';
    const rule = new ApiKeyRule(parseKeyHash(await createSlowHash(token)), definition, MASTER);
    expect(await rule.recognise(withKey(token))).toBeNull();
  });

  it('has two hashes when it is hashed twice', async () => {
    expect(await createSlowHash('correct-horse-battery')).not.toBe(
      await createSlowHash('correct-horse-battery'),
    );
  });

  it.each([
    '',
    'correct-horse-battery',
    'md5:d41d8cd98f00b204e9800998ecf8427e',
    'sha256:abc',
    `sha256:${'A'.repeat(64)}`,
    `scrypt:1024:8:1:${'a'.repeat(22)}:${'a'.repeat(43)}`,
    `scrypt:65537:8:1:${'a'.repeat(22)}:${'a'.repeat(43)}`,
    `scrypt:1048576:8:1:${'a'.repeat(22)}:${'a'.repeat(43)}`,
    `scrypt:65536:8:1:short:${'a'.repeat(43)}`,
  ])('cannot be given as %j', (text) => {
    expect(() => parseKeyHash(text)).toThrow(TypeError);
  });
});

const SUBJECT = 'CN=reports,OU=data,O=Acme';
const certificates = new ClientCertificateRule(
  {
    header: 'X-Client-Cert-Subject',
    verified: { header: 'X-Client-Cert-Verify', value: 'SUCCESS' },
    trustedProxies: ['10.0.0.0/8', 'fd00::/8', '192.0.2.7'],
    subjects: [SUBJECT],
  },
  definition,
  MASTER,
);
const createCertificateHeaders = (subject: string, verify = 'SUCCESS') => ({
  'x-client-cert-subject': subject,
  'x-client-cert-verify': verify,
});

describe('a certificate that a proxy verified', () => {
  it.each(['10.255.0.1', '::ffff:10.0.0.9', 'fd12::1', '192.0.2.7'])('is believed from %s', (peer) => {
    const agent = certificates.recognise(from(createCertificateHeaders(SUBJECT), peer));
    expect(agent).toMatchObject({ definition, principal: `certificate:${SUBJECT}` });
  });

  it.each(['11.0.0.1', '127.0.0.1', '::1', 'fe80::1', '192.0.2.8', '', 'unix', '10.0.0.1.example.com'])(
    'is worth nothing from %j',
    (peer) => {
      expect(certificates.recognise(from(createCertificateHeaders(SUBJECT), peer))).toBeNull();
    },
  );

  it.each<[string, Record<string, string>]>([
    ['of another subject', createCertificateHeaders('CN=root,OU=data,O=Acme')],
    ['of a subject that merely holds the name', createCertificateHeaders(`${SUBJECT},CN=root`)],
    ['of a subject in other letters', createCertificateHeaders(SUBJECT.toLowerCase())],
    ['sent twice, once by the client', createCertificateHeaders(`${SUBJECT}, ${SUBJECT}`)],
    ['that the proxy did not verify', createCertificateHeaders(SUBJECT, 'FAILED:self-signed')],
    ['that the proxy says nothing of', { 'x-client-cert-subject': SUBJECT }],
    ['of nobody', createCertificateHeaders('')],
  ])('is refused %s', (_, headers) => {
    expect(certificates.recognise(from(headers))).toBeNull();
  });

  it('from a stranger is a wrong credential, and not none', async () => {
    const anonymous = new AnonymousRule(definition, MASTER, ['x-client-cert-subject']);
    const rules = new RuleAuthenticator([certificates, anonymous]);
    await expect(rules.authenticate(from(createCertificateHeaders(SUBJECT), '127.0.0.1'))).rejects.toThrow(
      'Unauthorized',
    );
    await expect(rules.authenticate(from({ host: 'localhost' }, '127.0.0.1'))).resolves.toMatchObject({
      definition,
    });
  });

  it('never lets anybody in whose address is outside of the networks', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
        const admitted =
          certificates.recognise(from(createCertificateHeaders(SUBJECT), octets.join('.'))) !== null;
        expect(admitted).toBe(octets[0] === 10 || octets.join('.') === '192.0.2.7');
      }),
    );
  });
});

describe('networks', () => {
  it.each([
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0/8',
    'proxy.example.com',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '/8',
    '',
  ])('cannot be given as %j', (entry) => {
    expect(() => new TrustedNetworks([entry])).toThrow(TypeError);
  });
});
