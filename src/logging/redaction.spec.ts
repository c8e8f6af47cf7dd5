import fc from 'fast-check';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONFIG_SCHEMA, configFile } from '#config';
import type { SchemaNode } from '#schema';
import { secretsIn } from './configured-secrets.js';
import { type LogLine, Redaction, ServiceLogger } from './service-logger.js';

const redaction = new Redaction();

/** Much more than what is taken for a credential: an option that sounds like one and is none is listed in its test. */
const SOUNDS_SECRET =
  /auth|bearer|cert|cookie|cred|crypt|hash|head|jwt|key|nonce|otp|pass|phrase|pepper|pin|priv|pw|salt|secret|seed|sess|sign|tls|token/i;

/** The dotted path of every option; `*` stands for names that the operator chooses, and for entries. */
function listOptions(schema: SchemaNode, path: readonly string[] = []): string[] {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, option]) => [
    [...path, name].join('.'),
    ...listOptions(option, [...path, name]),
  ]);
  const { items, additionalProperties: named, anyOf = [] } = schema;
  const chosen = [items, named].flatMap((node) =>
    typeof node === 'object' ? listOptions(node, [...path, '*']) : [],
  );
  return [...new Set([...below, ...chosen, ...anyOf.flatMap((node) => listOptions(node, path))])];
}

/** A configuration with this value at a path. */
const giveTo = (path: string, value: string) =>
  path.split('.').reduceRight<unknown>((held, name) => ({ [name]: held }), value) as Record<string, unknown>;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-redaction-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a line of the log', () => {
  it.each([
    ['the password of a URI', 'cannot reach mongodb://admin:hunter2@db:27017/app', 'hunter2'],
    ['a user in a URI', 'redis://:hunter2@cache:6379 is away', 'hunter2'],
    ['a bearer token', 'Authorization: Bearer abc.def-ghi', 'abc.def-ghi'],
    ['basic credentials', 'sent Basic dXNlcjpwYXNz', 'dXNlcjpwYXNz'],
    ['a web token', 'token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig-na_ture', 'eyJzdWIiOiIxIn0'],
    ['a Parse session', 'session r:0123456789abcdef0123456789abcdef ended', '0123456789abcdef'],
    ['an API key header', 'x-mcp-api-key: swordfish', 'swordfish'],
    ['a cookie', 'Cookie: sid=swordfish', 'swordfish'],
    ['a JSON member', '{"password": "sword\\"fish", "a": 1}', 'fish'],
    ['a query', 'GET /x?access_token=swordfish&y=1', 'swordfish'],
  ])('does not hold %s', (_, line, secret) => {
    expect(redaction.text(line)).not.toContain(secret);
  });

  it('keeps what only sounds like a credential', () => {
    const line =
      '{"tool":"query_class","args_keys":["limit"],"est_input_tokens":457,"embed_tokens":3,"principal":"key:ab12"}';
    expect(redaction.text(line)).toBe(line);
  });

  it('does not hold members with the name of a credential, however deep', () => {
    const result = redaction.value({
      headers: { Authorization: 'swordfish', list: [{ apiKey: 'swordfish' }] },
      n: 1,
    });
    expect(result).toEqual({
      headers: { Authorization: '[redacted]', list: [{ apiKey: '[redacted]' }] },
      n: 1,
    });
  });

  it('never holds a credential of the configuration, whatever is around it', () => {
    const config = {
      auth: [{ apiKey: 'correct horse battery', agent: 'a' }],
      parse: { masterKey: 'mk-staple-8' },
      database: { uri: 'mongodb://admin:p%40ssw0rd%21@db/app' },
      traces: { headers: { 'x-key': 'collector-key' } },
      server: { previousStateKeys: ['k'.repeat(32)] },
      redis: { sentinelPassword: 'of-the-sentinels' },
      policy: { maskingKey: 'of-the-pseudonyms', classes: { ApiKey: { fields: ['createdAt'] } } },
    };
    const secrets = [
      'correct horse battery',
      'mk-staple-8',
      'p@ssw0rd!',
      'collector-key',
      'k'.repeat(32),
      'of-the-sentinels',
      'of-the-pseudonyms',
    ];
    expect(secretsIn(config)).toEqual(expect.arrayContaining(secrets));
    expect(secretsIn(config)).not.toContain('createdAt');
    const knowing = new Redaction(secretsIn(config));
    fc.assert(
      fc.property(fc.string(), fc.constantFrom(...secrets), fc.string(), (before, secret, after) => {
        expect(knowing.text(before + secret + after)).not.toContain(secret);
      }),
    );
  });

  it('holds no credential of a later configuration, nor of those before it', () => {
    const lines: LogLine[] = [];
    const logger = new ServiceLogger({
      logLevels: ['warn'],
      write: (line) => lines.push(line),
      redaction: new Redaction(['the-first-key']),
    });
    logger.warn('the-second-key');
    logger.hideSecretsOf({ auth: [{ apiKey: 'the-second-key' }] });
    logger.warn('the-second-key');
    logger.warn('the-first-key');
    expect(lines.map(({ message }) => message)).toEqual(['the-second-key', '[redacted]', '[redacted]']);
  });

  it('holds no value of an option that is named like a credential, as the schema of the file has it', () => {
    const nameOf = (path: string) => path.split('.').at(-1) ?? '';
    const named = listOptions(CONFIG_SCHEMA).filter((path) => SOUNDS_SECRET.test(nameOf(path)));
    expect(named).toEqual(expect.arrayContaining(['server.stateKey', 'audit.chainKey', 'policy.maskingKey']));
    const missed = named.filter((path) => !secretsIn(giveTo(path, 'swordfish')).includes('swordfish'));
    const other =
      'apiKeyHash auth bypass cert clientCertificate embedCostPerMillionTokens hash header maxContextTokens maxPerSession maxSessions ' +
      'maxTokens oauth parseSession preAuthRateLimit requireCustomHeader seed session sessions suppressMasterKeyWarning tls ' +
      'tokenCostPerMillionInput tokens';
    expect([...new Set(missed.map(nameOf))].toSorted().join(' ')).toBe(other);
  });

  it.each<[string, string]>([
    ['a list', "- auth: [{ apiKey: 'swordfish' }]"],
    ['a list of texts without blanks', '- apiKey:swordfish'],
    ['one text', 'apiKey:swordfish'],
    ['a key of digits', 'auth: [{ apiKey: 123456789 }]'],
    ['a key of more digits than a number holds', 'auth: [{ apiKey: 12345678901234567890 }]'],
    ['a misspelt option', "auth: [{ apikey: 'swordfish' }]"],
    ['another option beside it', "auth: [{ apiKey: 'swordfish', unknown: 1 }]\nunknown: 1"],
    ['options that are further in than they may be', "agents:\n  auth: [{ apiKey: 'swordfish' }]"],
    ['a name that is used twice', "auth: [{ apiKey: 'swordfish' }]\nauth: []"],
    ['a list that does not end', "auth: [{ apiKey: 'swordfish' }]\nagents: ["],
    ['a text that does not end', 'agents: "a\nauth: [{apiKey: swordfish}]'],
    ['a tab', 'auth:\n\t- apiKey: swordfish'],
    ['JSON without its end', '{"auth": [{"apiKey": "swordfish"}], "agents": {'],
    ['a list below its name', 'server:\n  previousStateKeys:\n    - swordfish\nagents: ['],
    ['an object behind its name', 'traces: { headers: { x-any: swordfish } }\nagents: ['],
    ['an object below its name', 'traces:\n  headers:\n    x-any: swordfish\nagents: ['],
    ['a password in a URI', 'database: { uri: mongodb://admin:swordfish@db/app }\nagents: ['],
    ['a password with a comma in a URI', 'database: { uri: mongodb://admin:sword,fish@db/app }\nagents: ['],
    ['a key that begins as an object does', 'auth:\n  - apiKey: {x}swordfish\nagents: ['],
    ['a key that begins as a text in quotes does', 'auth:\n  - apiKey: "ab"swordfish'],
    ['an object that holds itself', 'agents: &a { self: *a }\nauth: [{ apiKey: swordfish }]'],
    ['a variable', 'auth: [{ apiKey: ${GIVEN} }]\nagents: ['],
    ['a second document', "agents: {}\n---\nauth: [{ apiKey: 'swordfish' }]"],
    ['an alias of nothing', "auth: [{ apiKey: 'swordfish', agent: *nobody }]"],
    ['lists in lists without end', `agents: ${'['.repeat(300)}\nauth: [{ apiKey: swordfish }]`],
    ['a missing variable', "auth: [{ apiKey: 'swordfish', agent: '${NOBODY}' }]"],
  ])('holds no credential of a file that is refused for %s', (_, written) => {
    const file = join(folder, 'refused.yaml');
    writeFileSync(file, written);
    const { held } = configFile(file, { GIVEN: 'swordfish' });
    const knowing = new Redaction(secretsIn(held));
    const given = /(?:\{x\}|"ab")?sword,?fish|\d{9,}/.exec(written)?.[0] ?? 'swordfish';
    expect(knowing.text(`asked by ${given}: agents, reader`)).toBe('asked by [redacted]: agents, reader');
  });

  it('holds of its members what it would hold if each were looked at alone', () => {
    const knowing = new Redaction(['correct horse battery']);
    const words = [
      'correct horse battery',
      'mongodb://admin:hunter2@db',
      'Bearer',
      'abc.def-ghi',
      'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig',
      'r:0123456789abcdef0123456789abcdef',
      'Cookie: sid=swordfish',
      '{"password": "swordfish"}',
      'token=swordfish',
      '\u001b[2J',
      '\n',
      '"',
      'plain',
    ];
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(fc.constantFrom(...words)).map((parts) => parts.join(' ')),
      fc.array(fc.constantFrom(...words)).map((parts) => parts.join('')),
    );
    const name = fc.oneof(fc.constantFrom('principal', 'cause', 'token', 'Password'), fc.string());
    const member = fc.oneof(
      text,
      fc.integer(),
      fc.boolean(),
      fc.constant(undefined),
      fc.array(text),
      fc.bigInt(),
    );
    fc.assert(
      fc.property(fc.dictionary(name, member, { maxKeys: 20 }), (members) => {
        expect(knowing.members(members)).toEqual(knowing.value(members));
      }),
      { numRuns: 500 },
    );
  });

  it('is one line without anything that drives a terminal, whatever it is made of', () => {
    const lines: LogLine[] = [];
    const logger = new ServiceLogger({ logLevels: ['warn', 'error'], write: (line) => lines.push(line) });
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (message, context) => {
        lines.length = 0;
        logger.warn(`${message}\u001b[2J\n{"level":"fatal"}\u2028\u202e`, context);
        const { message: told, context: where } = lines[0] as LogLine;
        expect(lines).toHaveLength(1);
        // eslint-disable-next-line no-control-regex
        expect(told + where).not.toMatch(
          /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e]/,
        );
      }),
    );
  });

  it('holds the stack of an error, and levels below the least urgent one are none', () => {
    const lines: LogLine[] = [];
    const logger = new ServiceLogger({
      logLevels: ['error'],
      write: (line) => lines.push(line),
      fields: () => ({ trace_id: 'abc' }),
    });
    logger.warn('not told');
    logger.error('broken', 'Error: broken\n    at x (file.js:1:1)', 'Part');
    expect(lines).toEqual([
      {
        level: 'error',
        context: 'Part',
        message: 'broken',
        stack: 'Error: broken\\n    at x (file.js:1:1)',
        fields: { trace_id: 'abc' },
      },
    ]);
  });
});
