import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeExamination, examinationJson } from './examine.js';
import { type ConfigSources, maskConfig, listSecrets } from './masked-config.js';

const NOWHERE: ConfigSources = { raw: {}, references: [], overlay: () => null };
const shownOf = (config: object, sources = NOWHERE) =>
  Object.fromEntries(maskConfig(config, sources).map(({ path, value }) => [path, value]));

describe('the configuration in a report', () => {
  it.each([
    ['server.stateKey', { server: { stateKey: 's3cret-value' } }],
    ['server.previousStateKeys', { server: { previousStateKeys: ['s3cret-value', 's3cret-value'] } }],
    ['parse.masterKey', { parse: { masterKey: 's3cret-value' } }],
    ['auth.0.apiKey', { auth: [{ apiKey: 's3cret-value', agent: 'a' }] }],
    ['approvals.webhook.secret', { approvals: { webhook: { secret: 's3cret-value' } } }],
    ['approvals.webhook.url', { approvals: { webhook: { url: 'https://h.example.com/s3cret-value' } } }],
    [
      'audit.sinks.0.url',
      { audit: { sinks: [{ kind: 'webhook', url: 'https://h.example.com/s3cret-value' }] } },
    ],
    ['database.uri', { database: { uri: 'mongodb://bob:s3cret-value@db/x?authSource=admin' } }],
    ['database.uri', { database: { uri: 'mongodb://bob:a/s3cret-value@h@db/x' } }],
    ['database.uri', { database: { uri: 'mongodb://db/x?authMechanismProperties=T:s3cret-value' } }],
    ['redis.url', { redis: { url: 'redis://:s3cret-value@r:6379/0' } }],
    ['server.requireCustomHeader.X-Key', { server: { requireCustomHeader: { 'X-Key': 's3cret-value' } } }],
  ])('never shows what is secret: %s', (path, config) => {
    const shown = shownOf(config);
    expect(JSON.stringify(shown)).not.toContain('s3cret-value');
    expect(JSON.stringify(shown[path])).toContain('***');
  });

  it('masks whatever came out of a secret file or a variable that is named like one, whatever its option is called', () => {
    const sources: ConfigSources = {
      raw: {},
      references: [
        { path: 'a', kind: 'file', name: '/run/secrets/a' },
        { path: 'b', kind: 'environment', name: 'SOME_TOKEN' },
      ],
      overlay: (path) => (path === 'c' ? 'PARSE_APP_ID_FILE' : null),
    };
    expect(shownOf({ a: 'x', b: 'y', c: 'z', d: 'plain' }, sources)).toEqual({
      a: '***',
      b: '***',
      c: '***',
      d: 'plain',
    });
  });

  it('keeps what an operator needs of an address', () => {
    const uri =
      'mongodb://bob:pw@one:1,two:2/shop?replicaSet=rs0&authSource=admin&tlsCertificateKeyFilePassword=x';
    expect(shownOf({ database: { uri } })).toEqual({
      'database.uri':
        'mongodb://***@one:1,two:2/shop?replicaSet=rs0&authSource=admin&tlsCertificateKeyFilePassword=***',
    });
  });

  it('says of each option where its value comes from', () => {
    const sources: ConfigSources = {
      raw: { server: { host: 'h', stateKey: 'k' } },
      references: [{ path: 'server.stateKey', kind: 'file', name: '/k' }],
      overlay: (path) => (path === 'server.port' ? 'PORT' : null),
    };
    const lines = maskConfig({ server: { host: 'h', port: 1, stateKey: 'k', path: '/mcp' } }, sources);
    expect(lines.map(({ path, origin }) => [path, origin])).toEqual([
      ['server.host', 'file'],
      ['server.port', 'environment PORT'],
      ['server.stateKey', 'file, from /k'],
      ['server.path', 'default'],
    ]);
  });

  it('leaves nothing of a secret of which another one is a part', () => {
    const config = { auth: [{ apiKey: 'arguments' }], redis: { url: 'redis://:arguments!!@r' } };
    const examination = {
      findings: [{ check: 'x', level: 'fail' as const, found: 'said <arguments> and <arguments!!>' }],
      config: maskConfig(config, NOWHERE),
      secrets: listSecrets(config, NOWHERE),
    };
    expect(describeExamination(examination)).toContain('said <***> and <***>');
  });

  it('never lets a secret leave in a finding that quotes it, in neither form', () => {
    const secret = fc.string({ unit: 'grapheme-ascii', minLength: 8, maxLength: 40 });
    fc.assert(
      fc.property(secret, secret, (key, password) => {
        fc.pre(!/[@\s:/?]/.test(password) && key.trim() !== '' && !'***configuration'.includes(key));
        const config = { auth: [{ apiKey: key }], redis: { url: `redis://:${password}@r` } };
        const examination = {
          findings: [{ check: 'x', level: 'fail' as const, found: `said <${key}> and <${password}>` }],
          config: maskConfig(config, NOWHERE),
          secrets: listSecrets(config, NOWHERE),
        };
        expect(describeExamination(examination)).not.toContain(`<${key}>`);
        expect(describeExamination(examination)).not.toContain(`<${password}>`);
        const { findings } = JSON.parse(examinationJson(examination)) as { findings: { found: string }[] };
        expect(findings[0]?.found).toBe('said <***> and <***>');
      }),
      { numRuns: 200 },
    );
  });
});
