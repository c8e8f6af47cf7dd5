import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { type Database, startDatabase } from '../../support/service.js';
import { runCommand } from '../../support/terminal.js';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const COMMANDS = join(root, 'dist/bundle/cli.js');
const SEED = { objects: { Post: [{ objectId: 'p1', title: 'One' }] } };

const folder = makeFolder('commands');
let database: Database;
beforeAll(async () => {
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
  // The other database of the server is the one that `embedded` made ready.
  writeFileSync(join(folder, 'parley.yaml'), 'database: { name: second }');
  writeFileSync(join(folder, 'all.yaml'), 'policy: { unlistedClasses: allow }');
  database = await startDatabase({ objects: {} });
  const client = await MongoClient.connect(database.uri);
  await client.db('full').collection('things').insertOne({ size: 1 });
  await client.close();
  writeFileSync(join(folder, 'none.jsonl'), '');
  writeFileSync(join(folder, 'text.jsonl'), 'no record\n');
  writeFileSync(join(folder, 'wider.yaml'), 'agents: { default: { permissions: write }, other: {} }');
  const policyCase = { rule: 'r', agent: 'default', tool: 'list_tools', arguments: {} };
  writeFileSync(join(folder, 'holds.yaml'), JSON.stringify([{ ...policyCase, expect: { allowed: true } }]));
  writeFileSync(
    join(folder, 'fails.yaml'),
    JSON.stringify([{ ...policyCase, expect: { refused: 'access_denied' } }]),
  );
});

/** Runs a command to its end, in a folder of its own. */
function parley(args: string[], env: Record<string, string> = {}) {
  return runCommand(args, '', { cwd: folder, env });
}

describe('the command line', () => {
  it('says of a command that does not exist that it does not exist', async () => {
    const { code, stderr } = await parley(['chart']);
    expect(code).toBe(2);
    expect(stderr).toContain("unknown command 'chart'");
  });

  it.each([
    [['help', 'chart'], "unknown command 'chart'"],
    [['help', 'stats'], 'Did you mean status?'],
    [['help', 'agents', 'lst'], 'Did you mean list?'],
    [['agents', 'help', 'lst'], 'Did you mean list?'],
    [['agents', 'lst', '--help'], 'Did you mean list?'],
    [['stats', '--help'], 'Did you mean status?'],
    [['stats'], 'Did you mean status?'],
    [['policy', 'chek'], 'Did you mean check?'],
    [['audit', 'search', '--tpye', 'x'], 'Did you mean --type?'],
    [['serve', '--prot', '1'], 'Did you mean --port?'],
  ])('names for %j what is meant, and shows no help of something else', async (words, said) => {
    const { code, stdout, stderr } = await parley(words);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(said);
    expect(stderr).not.toContain('Usage:');
  });

  it.each([
    [['help', 'agents', 'list'], 'Usage: parley agents list '],
    [['agents', 'help', 'list'], 'Usage: parley agents list '],
    [['help', 'agents'], 'Usage: parley agents '],
    [['help'], 'Usage: parley '],
  ])('shows for %j the help that was asked for', async (words, said) => {
    const { code, stdout } = await parley(words);
    expect(code).toBe(0);
    expect(stdout).toContain(said);
  });

  it('runs the service when no command is given', async () => {
    const { code, stderr } = await parley([], { PARSE_MCP_ENABLED: 'false' });
    expect(code).toBe(1);
    expect(stderr).toContain('the server is switched off');
  });
});

describe('the program of the service', () => {
  const main = join(root, 'dist', 'bundle', 'main.js');
  const run = (argument: string) =>
    spawnSync(process.execPath, [main, argument], { cwd: folder, encoding: 'utf8', timeout: 30_000 });

  it('shows what it takes, and starts nothing', () => {
    const { status, stdout } = run('--help');
    expect([status, stdout]).toEqual([0, expect.stringContaining('Usage: parley serve')]);
  });

  it('refuses what it does not know', () => {
    const { status, stderr } = run('--prot');
    expect([status, stderr]).toEqual([2, expect.stringContaining("unknown option '--prot'")]);
  });
});

describe('an address of an audit sink that the driver refuses', () => {
  const sinks = [{ kind: 'mongodb', uri: 'mongodb://h/?tlss=true', database: 'audit' }];
  const REFUSED = /audit\.sinks\.0\.uri.*the option tlss is not one of the driver/;
  beforeAll(() => {
    const agents = { reader: {} };
    const auth = [{ apiKey: 'key-of-reader-000', agent: 'reader', name: 'reader' }];
    writeFileSync(join(folder, 'sinks.yaml'), JSON.stringify({ agents, auth, audit: { sinks } }));
  });

  it.each([
    ['policy check', ['policy', 'check']],
    ['doctor', ['doctor']],
    ['keys', ['keys']],
    ['audit search', ['audit', 'search']],
    ['serve', ['serve', '--port', '0']],
  ])('is named by %s, with its place', async (_, command) => {
    const { code, stdout, stderr } = await parley([...command, '--config', 'sinks.yaml']);
    expect([code, (stdout + stderr).replaceAll('\n', ' ')]).toEqual([1, expect.stringMatching(REFUSED)]);
  });
});

describe('a revocation', () => {
  const issuer = 'https://login.example.com';
  const rule = (more: object) => ({
    agent: 'default',
    oauth: { issuer, audience: 'https://p.example/mcp', ...more },
  });
  const oidc = {
    issuer,
    clientId: 'console',
    clientSecret: 'a secret of the client',
    redirectUri: 'https://p.example/console/session/oidc/callback',
    operators: [{ claim: 'role', equals: 'operator', agent: 'default' }],
  };
  const revoke = async (auth: object[], by: string, withConsole: boolean) => {
    const config = {
      agents: { default: {} },
      auth: [...auth, { apiKey: 'key-of-operator-0', agent: 'default' }],
      redis: { url: redis.url },
      ...(withConsole && { console: { operators: ['default'], oidc } }),
    };
    writeFileSync(join(folder, 'revoke.yaml'), JSON.stringify(config));
    return parley(['revoke', '--issuer', issuer, by, 'x', '--config', 'revoke.yaml']);
  };
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('says what it ended, and is a failure where tokens stay valid', async () => {
    const tokens = `tokens of ${issuer} issued until now`;
    const sessions = `console sessions of ${issuer} begun until now`;
    const listed = rule({ revocationList: true });
    expect(await revoke([listed], '--subject', false)).toEqual({
      code: 0,
      stdout: `revoked: ${tokens}\n`,
      stderr: '',
    });
    expect(await revoke([listed], '--subject', true)).toEqual({
      code: 0,
      stdout: `revoked: ${tokens}, ${sessions}\n`,
      stderr: '',
    });
    expect(await revoke([], '--subject', true)).toEqual({
      code: 0,
      stdout: `revoked: ${sessions}\n`,
      stderr: '',
    });
    expect(await revoke([rule({})], '--subject', true)).toEqual({
      code: 1,
      stdout: `revoked: ${sessions}\n`,
      stderr: `tokens stay valid: no oauth rule of ${issuer} has revocationList: true\n`,
    });
  });

  it('is refused where nothing looks it up', async () => {
    const { code, stdout } = await revoke([rule({})], '--subject', false);
    expect([code, stdout]).toEqual([1, '']);
  });

  it('of one token is refused where only sessions of the console are looked up', async () => {
    const { code, stdout, stderr } = await revoke([rule({})], '--token', true);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('--token revokes nothing')]);
  });
});

describe('exit codes', () => {
  it('are those of the command where a configuration has plugins', async () => {
    const plugin = join(root, 'test/fixtures/plugins/slow.mjs');
    writeFileSync(join(folder, 'plugins.yaml'), JSON.stringify({ plugins: [plugin] }));
    const { code, stdout } = await parley(['policy', 'check', '--config', 'plugins.yaml']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('0 faults')]);
  });

  const NOTHING = { PARLEY_CONFIG: 'nowhere.yaml' };
  const REAL = { MONGODB_URI: 'DATABASE' };
  const AWAY = { MONGODB_URI: 'mongodb://127.0.0.1:1/shop' };

  const CASES: readonly (readonly [string, string[], number, Record<string, string>])[] = [
    ['an input that ended', ['stdio'], 0, {}],
    ['a prompt that was left', ['console'], 0, {}],
    ['an agent of a prompt that is none', ['console', '--agent', 'nobody'], 2, {}],
    ['a prompt without a configuration', ['console'], 1, NOTHING],
    ['a chat without a model', ['chat'], 1, {}],
    ['an option of a chat that is none', ['chat', '--model', 'x'], 2, {}],
    ['a completion', ['completion', 'bash'], 0, {}],
    ['a completion for another shell', ['completion', 'tcsh'], 2, {}],
    ['a tool that did its work', ['tool', 'list_tools'], 0, {}],
    ['a first configuration', ['init', '--out', '-'], 0, REAL],
    ['a first configuration of nothing', ['init', '--out', '-'], 2, {}],
    ['a first configuration over a file', ['init', '--out', 'seed.json'], 1, REAL],
    ['a schema', ['schema'], 0, {}],
    ['a schema of something', ['schema', 'server'], 2, {}],
    ['a new key', ['hash-key', '--generate'], 0, {}],
    ['a key that is none', ['hash-key'], 2, {}],
    ['an issuer that is none', ['revoke', '--issuer', 'https://x.example', '--subject', 'a'], 1, {}],
    ['a configuration without errors', ['policy', 'check', '--config', 'parley.yaml'], 0, {}],
    ['a configuration whose database is away', ['policy', 'check', '--config', 'all.yaml'], 1, AWAY],
    ['cases that hold', ['policy', 'test', 'holds.yaml'], 0, {}],
    ['a case that does not hold', ['policy', 'test', 'fails.yaml'], 1, {}],
    ['no cases', ['policy', 'test'], 2, {}],
    ['two policies', ['policy', 'diff', 'parley.yaml', 'wider.yaml'], 0, {}],
    ['a wider policy', ['policy', 'diff', 'parley.yaml', 'wider.yaml', '--fail-on-widening'], 1, {}],
    ['one policy', ['policy', 'diff', 'parley.yaml'], 2, {}],
    ['records without a call', ['policy', 'suggest', '--file', 'none.jsonl'], 0, {}],
    ['lines that are no records', ['policy', 'suggest', '--file', 'text.jsonl'], 1, {}],
    ['records that are not there', ['policy', 'suggest', '--file', 'nowhere.jsonl'], 1, {}],
    ['a suggestion without records', ['policy', 'suggest'], 2, {}],
    ['a history that is declared partial', ['audit', 'verify', 'none.jsonl', '--partial'], 0, {}],
    ['a history without a record', ['audit', 'verify', 'none.jsonl'], 1, {}],
    ['a collection that is not configured', ['audit', 'verify', 'none.jsonl', '--partial', '--mongo'], 2, {}],
    [
      'a search in a file beside a wrong configuration',
      ['audit', 'search', 'none.jsonl'],
      0,
      { PARLEY_CONFIG: 'text.jsonl' },
    ],
    ['a search that finds nothing', ['audit', 'search', 'none.jsonl'], 0, {}],
    ['a search in no file', ['audit', 'search', 'nowhere.jsonl'], 1, {}],
    ['a search in lines that are no records', ['audit', 'search', 'text.jsonl'], 1, {}],
    ['a search in a folder', ['audit', 'search', '.'], 1, {}],
    ['a search without records', ['audit', 'search'], 2, {}],
    ['a limit that is none', ['audit', 'search', 'none.jsonl', '--limit', 'x'], 2, {}],
    ['a time that is none', ['audit', 'search', 'none.jsonl', '--from', 'yesterday'], 2, {}],
    ['a time without its zone', ['audit', 'search', 'none.jsonl', '--from', '2026-01-01T10:00'], 2, {}],
    ['a kind of record that is none', ['audit', 'search', 'none.jsonl', '--type', 'calls'], 2, {}],
    ['a configuration without failures', ['doctor', '--config', 'parley.yaml'], 0, {}],
    ['data in a folder that is not there', ['embedded', '--port', '0', '--data', 'nowhere/data'], 1, {}],
    ['data in a file of somebody else', ['embedded', '--port', '0', '--data', 'seed.json'], 1, {}],
    ['data in a folder', ['embedded', '--port', '0', '--data', '.'], 1, {}],
    ['a seed that is not there', ['embedded', '--port', '0', '--seed', 'nowhere.json'], 1, {}],
    ['a seed', ['seed', 'seed.json'], 0, { MONGODB_URI: 'SEEDED', PARLEY_CONFIG: 'wider.yaml' }],
    ['a seed of the embedded database', ['seed', 'seed.json'], 1, {}],
    ['no seed', ['seed'], 2, {}],
    ['a change set and a time', ['changes', 'undo', 'x', '--agent', 'a', '--since', '2026-01-01'], 2, {}],
    ['the version', ['--version'], 0, {}],
    ['help', ['doctor', '--help'], 0, {}],
    ['keys', ['keys', '--config', 'parley.yaml'], 0, {}],
    ['keys of no configuration', ['keys'], 1, NOTHING],
    ['usage of no configuration', ['usage', '--since', '2026-01-01'], 1, NOTHING],
    ['usage of no time', ['usage'], 2, {}],
    ['no such command', ['chart'], 2, {}],
    ['no such option', ['doctor', '--jsn'], 2, {}],
    ['an option without its value', ['policy', 'check', '--config'], 2, {}],
    ['a command without its argument', ['explain', 'query_class'], 2, {}],
    ['a part of a command', ['policy'], 2, {}],
    ['a port that is none', ['serve', '--port', 'x'], 2, {}],
    ['a port of a pipe that is none', ['stdio', '--port', '70000'], 2, {}],
    ['a database at a port that is none', ['embedded', '--port', 'x'], 2, {}],
    ['arguments that are no object', ['explain', 'query_class', '[]', '--agent', 'default'], 2, {}],
    ['an agent that is none', ['explain', 'list_tools', '{}', '--agent', 'nobody'], 2, {}],
    ['a tool without a name', ['tool'], 2, {}],
    ['nothing to take back', ['revoke', '--issuer', 'https://x.example'], 2, {}],
    ['a head that is none', ['audit', 'verify', 'seed.json', '--head', 'x'], 2, {}],
    ['an outcome that is none', ['audit', 'search', '--outcome', 'maybe'], 2, {}],
    [
      'a call that would be refused',
      ['explain', 'query_class', '{"class_name":"_Session"}', '--agent', 'default'],
      1,
      {},
    ],
    ['a call that would be allowed', ['explain', 'list_tools', '{}', '--agent', 'default'], 0, {}],
    ['a configuration that is not there, checked', ['policy', 'check'], 1, NOTHING],
    ['a configuration that is not there, examined', ['doctor'], 1, NOTHING],
    ['a configuration that is not there, served', ['serve'], 1, NOTHING],
    ['a configuration that is not there, on a pipe', ['stdio', '--config', 'nowhere.yaml'], 1, {}],
    ['a configuration that is not there, used', ['tool', 'list_tools'], 1, NOTHING],
  ];

  it.concurrent.each(CASES)('report %s', async (_, args, code, given) => {
    const env = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [
        name,
        value
          .replace('DATABASE', database.uri.replace('/?', '/full?'))
          .replace('SEEDED', database.uri.replace('/?', '/seeded?')),
      ]),
    );
    const ended = await parley(args, env);
    expect([ended.code, ended.stderr]).toEqual([code, expect.any(String)]);
    // One line of error, what was probably meant, and where to read on; the page of help is for a command without its part.
    if (code === 2)
      expect(ended.stderr.trim().split('\n').length).toBeLessThanOrEqual(args[0] === 'policy' ? 99 : 3);
    expect(ended.stderr).not.toMatch(/ at .*\.js:\d+/);
  });

  const RUNNING = ['serve', 'embedded'];

  it.each(RUNNING)('report %s that ended because it was asked to', async (command) => {
    const child = spawn(process.execPath, [COMMANDS, command, '--port', '0'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '' },
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (/listening on/.test(chunk.toString())) child.kill('SIGTERM');
    });
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
  });

  /** What needs a model or Redis is tried there. */
  const ELSEWHERE: Readonly<Record<string, string>> = {
    'usage 0': 'test/e2e/console/keys-and-usage.e2e-spec.ts',
    'chat 0': 'test/e2e/operations/chat.e2e-spec.ts',
    'revoke 0': 'test/e2e/auth/oauth.e2e-spec.ts',
    ...Object.fromEntries(
      ['status', ...['list', 'show', 'approve', 'deny'].map((name) => `approvals ${name}`)].flatMap((name) =>
        [0, 1, 2].map((code) => [`${name} ${code}`, 'test/e2e/operations/service-commands.e2e-spec.ts']),
      ),
    ),
    ...Object.fromEntries(
      ['list', 'suspend', 'resume'].flatMap((name) =>
        [0, 1, 2].map((code) => [
          `agents ${name} ${code}`,
          'test/e2e/operations/suspended-agents.e2e-spec.ts',
        ]),
      ),
    ),
    ...Object.fromEntries(
      ['list', 'show', 'approve', 'deny', 'discard', 'undo'].flatMap((name) =>
        [0, 1, 2].map((code) => [`changes ${name} ${code}`, 'test/e2e/changes/operators-undo.e2e-spec.ts']),
      ),
    ),
  };

  it('are those of the table of the page, of every command', async () => {
    const page = readFileSync(join(root, 'docs/reference/configuration.md'), 'utf8');
    const [, table = ''] = page.split('| Command | 0 | 1 | 2, beside unknown options |\n');
    const rows = [
      ...(table.split('\n\n')[0] ?? '').matchAll(/^\| `([a-z -]+)` \| (.+) \| (.+) \| (.+) \|$/gm),
    ];
    const listed = async (...group: string[]) => {
      const { stdout } = await parley([...group, '--help']);
      const [, commands = ''] = stdout.split('Commands:\n');
      const names = [...commands.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = '']) => name);
      return names.filter((name) => name !== 'help').map((name) => [...group, name].join(' '));
    };
    const groups = ['policy', 'audit', 'agents', 'approvals', 'changes'];
    const all = [
      ...(await listed()).filter((name) => !groups.includes(name)),
      ...(await Promise.all(groups.map((one) => listed(one)))).flat(),
    ];
    expect(new Set(rows.map(([, name]) => name))).toEqual(new Set(all));
    const tried = new Set([
      ...RUNNING.map((name) => `${name} 0`),
      ...CASES.map(
        ([, args, code]) => `${args.slice(0, groups.includes(args[0] ?? '') ? 2 : 1).join(' ')} ${code}`,
      ),
    ]);
    for (const [, name = '', ...codes] of rows)
      for (const [code, cell] of codes.entries()) {
        const which = `${name} ${code}`;
        const file = ELSEWHERE[which];
        if (cell === '–') continue;
        if (file === undefined) expect([which, tried.has(which)]).toEqual([which, true]);
        else expect([which, existsSync(join(root, file))]).toEqual([which, true]);
      }
  });

  it('report a history without a single record', async () => {
    writeFileSync(join(folder, 'empty.jsonl'), '');
    const audit = 'audit: { chainKey: 0123456789abcdef0123456789abcdef }';
    writeFileSync(join(folder, 'keyed.yaml'), audit);
    const verify = ['audit', 'verify', 'empty.jsonl'];
    for (const more of [[], ['--config', 'keyed.yaml']]) {
      const ended = await parley([...verify, ...more]);
      expect(ended).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('INCOMPLETE empty.jsonl: there is no record'),
      });
      expect((await parley([...verify, ...more, '--partial'])).code).toBe(0);
    }
  });
});

describe('what is in force', () => {
  it('is listed by doctor before its findings, with defaults only when asked', async () => {
    const short = await parley(['doctor', '--config', 'parley.yaml']);
    const lines = short.stdout.split('\n');
    expect(lines.findIndex((line) => line.includes(' = '))).toBe(0);
    expect(lines.findLastIndex((line) => line.includes(' = '))).toBeLessThan(
      lines.findIndex((line) => /^(ok|warn|fail) /.test(line)),
    );
    expect(short.stdout).toContain('database.name = "second"  (file)');
    expect(short.stdout).not.toMatch(/ = .*\(default\)$/m);
    expect(short.stdout).toMatch(/\d+ options have their defaults: --all tells them/);
    const long = await parley(['doctor', '--all', '--config', 'parley.yaml']);
    expect(long.stdout).toContain('server.port = 3001  (default)');
  });

  it('is what --config and --port say', async () => {
    writeFileSync(join(folder, 'named.yaml'), 'server: { port: 1, path: /named }');
    const child = spawn(process.execPath, [COMMANDS, 'serve', '--config', 'named.yaml', '--port', '0'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '' },
    });
    let said = '';
    const url = await new Promise<string>((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        const found = /listening on (\S+)/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
      child.once('exit', () => reject(new Error(said)));
    });
    child.kill('SIGTERM');
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d{2,5}\/named$/);
  });
});

describe('a file .env of the working directory', () => {
  const inForce = async (dotEnv: string, env: Record<string, string> = {}) => {
    writeFileSync(join(folder, '.env'), dotEnv);
    try {
      const { stdout, stderr } = await parley(['doctor', '--json', '--config', 'parley.yaml'], env);
      if (stdout === '') throw new Error(stderr);
      const { config } = JSON.parse(stdout) as { config: { path: string; value: unknown; origin: string }[] };
      return (path: string) => config.find((one) => one.path === path);
    } finally {
      rmSync(join(folder, '.env'));
    }
  };

  it('is read, quotes and remarks as everywhere', async () => {
    const optionNamed = await inForce(
      '# remark\nPORT="4100"\nUNKNOWN=x\nexport HOST=localhost\nMCP_API_KEY=\'a key\'\n',
    );
    expect(optionNamed('server.port')).toMatchObject({ value: 4100, origin: 'environment PORT' });
    expect(optionNamed('server.host')).toMatchObject({ value: 'localhost' });
    expect(optionNamed('auth.0.apiKey')).toMatchObject({ value: '***' });
  });

  it('never wins over the environment, in either form of a variable', async () => {
    const optionNamed = await inForce('PORT=4100\n', { PORT: '4200' });
    expect(optionNamed('server.port')).toMatchObject({ value: 4200 });
    writeFileSync(join(folder, 'key'), 'from the file');
    const keyed = await inForce('MCP_API_KEY=from-dot-env\n', { MCP_API_KEY_FILE: join(folder, 'key') });
    expect(keyed('auth.0.apiKey')).toMatchObject({ origin: 'environment MCP_API_KEY_FILE' });
    const other = await inForce(`MCP_API_KEY_FILE=${join(folder, 'nowhere')}\n`, { MCP_API_KEY: 'given' });
    expect(other('auth.0.apiKey')).toMatchObject({ origin: 'environment MCP_API_KEY' });
  });

  it('opens no environment gate and changes nothing of Node', async () => {
    writeFileSync(
      join(folder, '.env'),
      'PARSE_AGENT_ALLOW_WRITE_TOOLS=true\nPARSE_AGENT_ALLOW_RAW_CRUD=true\nNODE_TLS_REJECT_UNAUTHORIZED=0\n',
    );
    const { stdout, stderr } = await parley(['doctor', '--config', 'parley.yaml']);
    rmSync(join(folder, '.env'));
    expect(stdout).toMatch(/^ok +gates +none is open/m);
    expect(stderr).not.toMatch(/NODE_TLS/);
  });

  it('names the endpoint of the model, as LLM_ENDPOINT does', async () => {
    writeFileSync(join(folder, 'chat.yaml'), 'llm: { allowedEndpoints: [https://allowed.example/v1] }');
    const asked = { LLM_PROVIDER: 'openai', LLM_API_KEY: 'k' };
    const refused = await parley(['chat', '--config', 'chat.yaml'], {
      ...asked,
      LLM_ENDPOINT: 'https://other.example/v1',
    });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/allowedEndpoints|not allowed|endpoint/i);
    const allowed = await parley(['chat', '--config', 'chat.yaml'], {
      ...asked,
      LLM_ENDPOINT: 'https://allowed.example/v1',
    });
    expect(allowed.code).toBe(0);
  });
});

describe('a seed', () => {
  const env = (uri: string) => ({ MONGODB_URI: uri });

  it('is loaded into an empty database and into no other', async () => {
    const loaded = await parley(['seed', 'seed.json'], env(database.uri));
    expect(loaded).toEqual({ code: 0, stdout: '', stderr: 'Seed loaded: 1 row\n' });
    const again = await parley(['seed', 'seed.json'], env(database.uri));
    expect(again).toEqual({
      code: 1,
      stdout: '',
      stderr: 'the database is not empty: nothing was changed\n',
    });
  });

  it('of which rows are left from a load that did not end is refused with what to do', async () => {
    const client = await MongoClient.connect(database.uri);
    await client.db('second').collection('_SCHEMA').drop();
    await client.close();
    const { code, stderr } = await parley(['seed', 'seed.json'], env(database.uri));
    expect(code).toBe(1);
    expect(stderr).toBe('rows of this seed are there already: empty the database, then load it again\n');
  });
});
