import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEnvironmentGates } from '#policy';
import { ConfigError } from './config-error.js';
import { readSecretFile, VARIABLES_FROM_FILES, withEnvironmentFiles } from './environment.js';
import { loadConfig } from './load-config.js';

const SECRET = 'hunter2-of-the-webhook';
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-secrets-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function secretFile(content: string | Uint8Array, name = 'secret'): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function load(yaml: string, env: Record<string, string> = {}) {
  writeFileSync(join(folder, 'parley.yaml'), yaml);
  return loadConfig(env, folder).config;
}

function errorsOf(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigError) return { issues: error.issues, message: error.message };
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('a secret from a file', () => {
  it.each([
    ['as it stands', SECRET, SECRET],
    ['without its line end', `${SECRET}\n`, SECRET],
    ['without the line end of other systems', `${SECRET}\r\n`, SECRET],
    ['with every line end but the last', 'a\nb\n\n', 'a\nb\n'],
    ['with its spaces', ' a b ', ' a b '],
  ])('is read %s', (_, content, expected) => {
    expect(readSecretFile(secretFile(content))).toBe(expected);
  });

  it('is read whole, whatever text it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }), (text) => {
        fc.pre(
          text.trim() !== '' && !text.includes('\0') && !text.endsWith('\n') && !text.startsWith('\ufeff'),
        );
        expect(readSecretFile(secretFile(`${text}\n`))).toBe(text.replace(/\r$/, ''));
      }),
      { numRuns: 100 },
    );
  });

  it('is followed through the links that secret mounts are made of', () => {
    const target = secretFile(SECRET, 'target');
    const link = join(folder, 'link');
    symlinkSync(target, link);
    expect(readSecretFile(link)).toBe(SECRET);
  });

  it.each([
    ['missing', () => join(folder, 'nowhere'), 'cannot be read (ENOENT)'],
    [
      'a folder',
      () => (mkdirSync(join(folder, 'd'), { recursive: true }), join(folder, 'd')),
      'is not a file',
    ],
    ['a device without an end', () => '/dev/zero', 'is not a file'],
    [
      'a pipe that nobody writes to',
      () => {
        execFileSync('mkfifo', [join(folder, 'pipe')]);
        return join(folder, 'pipe');
      },
      'is not a file',
    ],
    ['empty', () => secretFile(''), 'is empty'],
    ['nothing but a line end', () => secretFile('\n'), 'is empty'],
    ['longer than a secret is', () => secretFile('x'.repeat(65_537)), 'is longer than 65536 bytes'],
    ['not text', () => secretFile(Uint8Array.of(0x68, 0xff, 0xfe)), 'is not UTF-8 text'],
    ['broken by a zero', () => secretFile('hunter\0two'), 'is not text'],
  ])('is refused when it is %s', (_, make, reason) => {
    const path = make();
    expect(() => readSecretFile(path)).toThrow(`${path} ${reason}`);
  });
});

describe('${file:PATH} inside a value', () => {
  it('is the text of the file beside the configuration, alone or among other text', () => {
    secretFile('pass word@1\n', 'redis-password');
    const { redis, server } = load(
      'redis: { url: "redis://:${file:redis-password}@127.0.0.1:6379" }\nserver: { stateKey: "${file:./k}" }',
      // Written by the next line, before it is read.
      { HOST: (secretFile('k'.repeat(32), 'k'), '127.0.0.1') },
    );
    expect(redis.url).toBe('redis://:pass word@1@127.0.0.1:6379');
    expect(server.stateKey).toBe('k'.repeat(32));
  });

  it('stays text without quotes, so that a key of digits is still a key', () => {
    const path = secretFile('12345678\n');
    expect(load(`auth:\n  - apiKey: \${file:${path}}\n    agent: default`).auth).toEqual([
      { apiKey: '12345678', agent: 'default' },
    ]);
  });

  it('is not looked through for further references', () => {
    const path = secretFile('${HOME}${file:/etc/passwd}');
    const { auth } = load(`auth: [{ apiKey: "\${file:${path}}", agent: default }]`, { HOME: '/root' });
    expect(auth).toEqual([{ apiKey: '${HOME}${file:/etc/passwd}', agent: 'default' }]);
  });

  it('names every file that cannot be read, by path and place', () => {
    const { issues } = errorsOf(() =>
      load(
        'server: { stateKey: "${file:/nowhere/a}" }\nauth: [{ apiKey: "${file:/nowhere/b}", agent: default }]',
      ),
    );
    expect(issues).toMatchObject([
      { path: 'server.stateKey', message: '/nowhere/a cannot be read (ENOENT)' },
      { path: 'auth.0.apiKey', message: '/nowhere/b cannot be read (ENOENT)' },
    ]);
  });

  it('is never shown in an error of the option it was put into', () => {
    const path = secretFile(SECRET);
    const { message, issues } = errorsOf(() =>
      load(
        `server: { stateKey: "\${file:${path}}", sessions: "\${file:${path}}" }\n` +
          `redis: { url: "\${file:${path}}" }\ndatabase: { uri: "\${file:${path}}" }\nparse: { masterKey: " \${file:${path}}" }`,
      ),
    );
    expect(issues.map(({ path: at }) => at)).toEqual(
      expect.arrayContaining([
        'server.stateKey',
        'server.sessions',
        'redis.url',
        'database.uri',
        'parse.masterKey',
      ]),
    );
    expect(message).not.toContain(SECRET);
  });
});

describe('NAME_FILE', () => {
  it('gives every variable that overrides something', () => {
    const text = secretFile('text', 'text');
    for (const name of VARIABLES_FROM_FILES) {
      const env = withEnvironmentFiles({ [`${name}_FILE`]: text });
      expect(env).toEqual({ [name]: 'text' });
    }
  });

  it('overrides the file of the configuration, and is seen by ${NAME} in it', () => {
    const uri = secretFile('mongodb://127.0.0.1:1/x\n', 'uri');
    const key = secretFile(`${SECRET}\n`, 'key');
    const config = load('auth: [{ apiKey: "${MCP_API_KEY}", agent: default }]', {
      MONGODB_URI_FILE: uri,
      MCP_API_KEY_FILE: key,
    });
    expect(config.database.uri).toBe('mongodb://127.0.0.1:1/x');
    expect(config.auth).toEqual([{ apiKey: SECRET, agent: 'default' }]);
  });

  it('closes anonymous access as MCP_API_KEY does, and never leaves it open for an empty file', () => {
    const anonymous = 'auth: [{ anonymous: true, agent: default }]';
    expect(load(anonymous, { MCP_API_KEY_FILE: secretFile(SECRET) }).auth).toEqual([
      { apiKey: SECRET, agent: 'default' },
    ]);
    const { issues } = errorsOf(() => load(anonymous, { MCP_API_KEY_FILE: secretFile('\n') }));
    expect(issues).toEqual([{ path: 'MCP_API_KEY_FILE', message: `${join(folder, 'secret')} is empty` }]);
  });

  it('is refused beside the variable itself', () => {
    const { issues, message } = errorsOf(() =>
      load('server: {}', { MCP_API_KEY: 'one-key', MCP_API_KEY_FILE: secretFile(SECRET) }),
    );
    expect(issues.map(({ path }) => path)).toEqual(['MCP_API_KEY_FILE']);
    expect(message).not.toMatch(/one-key|hunter2/);
  });

  it('opens no environment gate', () => {
    const yes = secretFile('true', 'yes');
    const gates = Object.keys(readEnvironmentGates({}));
    const env = withEnvironmentFiles(Object.fromEntries(gates.map((gate) => [`${gate}_FILE`, yes])));
    expect(Object.values(readEnvironmentGates(env))).toEqual(gates.map(() => false));
  });

  it('of a file that the process may not read is reported by the code of the error', () => {
    const path = secretFile(SECRET, 'closed');
    chmodSync(path, 0);
    // Root reads everything: there is nothing to be refused then.
    if (process.getuid?.() === 0) expect(readSecretFile(path)).toBe(SECRET);
    else expect(() => readSecretFile(path)).toThrow('(EACCES)');
  });
});
