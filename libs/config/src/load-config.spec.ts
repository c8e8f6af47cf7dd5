import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError } from './config-error.js';
import { checkConfig, loadConfig } from './load-config.js';
import { readYaml } from './read-config-file.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function load(yaml: string, env: Record<string, string> = {}) {
  writeFileSync(join(folder, 'parley.yaml'), yaml);
  return loadConfig(env, folder);
}

function errorsOf(yaml: string, env: Record<string, string> = {}) {
  try {
    load(yaml, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.issues;
    throw error;
  }
  return [];
}

/** Something, that leaves every default. */
const DEFAULTS = 'server: {}';

describe('the configuration', () => {
  it('has documented defaults when the file leaves them', () => {
    const { config, agents } = load(DEFAULTS);
    expect(config.server).toMatchObject({
      host: '127.0.0.1',
      port: 3001,
      path: '/mcp',
      maxBodySize: 1048576,
      sessions: 'lenient',
    });
    expect(config.database).toEqual({
      uri: 'embedded',
      name: 'parley',
      readOnly: false,
      storage: 'parse',
      seed: null,
      fastReads: false,
    });
    expect(config.auth).toEqual([{ anonymous: true, agent: 'default' }]);
    expect([...agents.keys()]).toEqual(['default']);
  });

  it('may be JSON', () => {
    expect(load('{"server": {"port": 4000}}').config.server.port).toBe(4000);
  });

  it('is read the same behind a byte order mark, and so is every other file of YAML', () => {
    expect(load('\u{feff}server: { port: 4001 }').config.server.port).toBe(4001);
    for (const text of [
      '- rule: x\n  agent: y',
      '[1, 2]',
      'a: 1',
      '{"a": 1}',
      '"text"',
      '# remark\n- 1',
      '',
    ]) {
      const { value, errors } = readYaml(text, 'cases.yaml');
      expect(readYaml(`\u{feff}${text}`, 'cases.yaml')).toMatchObject({ value, errors });
    }
  });

  it('lists what a schema cannot say together with what it can', () => {
    const errors = errorsOf(`
server: { prot: 1 }
agents: { a: { tools: { profile: unheard-of } } }
auth: [{ apiKey: k, agent: ghost }, { agent: a }]
policy: { classes: { Post: { fields: [title], joinFields: [body] } } }
`);
    expect(errors.map((error) => error.path)).toEqual([
      'server.prot',
      'agents.a.tools.profile',
      'auth.0.agent',
      'auth.1',
      'policy.classes.Post.joinFields',
    ]);
  });

  it('blames an agent that cannot be built, not the rules that name it', () => {
    const errors = errorsOf(
      'agents: { a: { tools: { profile: unheard-of } } }\nauth: [{ apiKey: k, agent: a }]',
    );
    expect(errors.map((error) => error.path)).toEqual(['agents.a.tools.profile']);
  });

  it('says which entry of a list names a variable that is not set', () => {
    const errors = errorsOf(
      "auth: [{ anonymous: true, agent: default }, { apiKey: '${UNSET_KEY}', agent: default }]",
    );
    expect(errors).toMatchObject([
      { path: 'auth.1.apiKey', message: 'environment variable UNSET_KEY is not set' },
    ]);
  });

  it.each([
    ['a misspelt option', 'server:\n  prot: 3\n', ['2:3 server.prot']],
    ['a wrong type', 'agents:\n  a:\n    maxConcurrentCalls: many\n', ['3:5 agents.a.maxConcurrentCalls']],
    ['a missing variable', "auth:\n  - apiKey: '${UNSET_KEY}'\n    agent: default\n", ['2:5 auth.0.apiKey']],
    [
      'an entry of a list',
      'agents: { a: {} }\nauth:\n  - { anonymous: true, agent: b }\n',
      ['3:24 auth.0.agent'],
    ],
    ['a name with dots', 'policy:\n  classes:\n    a.b: { feilds: [] }\n', ['3:5 policy.classes.a.b']],
    [
      'what an alias repeats',
      'agents:\n  a: &a\n    tols: []\n  b: *a\n',
      ['3:5 agents.a.tols', '3:5 agents.b.tols'],
    ],
    ['what is missing, by what it is missing of', 'auth:\n  - apiKey: x\n', ['2:5 auth.0.agent']],
    ['what is no YAML', 'server:\n  port: 1\n  port: 2\n', ['3:3 ']],
  ])('says by line and column where the file has %s', (_, text, expected) => {
    const found = errorsOf(text).map(({ at = '', path }) => `${at.replace(/^.*parley\.yaml:/, '')} ${path}`);
    expect(found).toEqual(expect.arrayContaining(expected));
  });

  it('repeats nothing of a file that is no YAML: it may be a key', () => {
    const written =
      'auth:\n  - apiKey: sesame1\n    agent: "sesame2"\n  - { apiKey: sesame3, agent: a }\nmore:\n  - sesame4\n';
    let broken = 0;
    for (let at = 0; at <= written.length; at += 1)
      for (const slip of [
        '\n',
        '\n ',
        '  ',
        '\t',
        '"',
        "'",
        '[',
        '}',
        ': ',
        '- ',
        '|',
        '@',
        '%',
        '&',
        '!',
        '`',
      ]) {
        const { errors } = readYaml(written.slice(0, at) + slip + written.slice(at), 'parley.yaml');
        broken += errors.length;
        expect(JSON.stringify(errors)).not.toMatch(/sesa|same\d/);
      }
    expect(broken).toBeGreaterThan(1_000);
  });

  it('says that a pipe is not a file, and does not wait for who writes into it', () => {
    const pipe = join(folder, 'pipe.yaml');
    execFileSync('mkfifo', [pipe]);
    expect(() => loadConfig({ PARLEY_CONFIG: pipe }, folder)).toThrow(/is not a file/);
  });

  it.each([
    ['server: { port: 1 }', 'PORT', '99999', 'server.port'],
    ['database: { uri: embedded }', 'MONGODB_URI', 'localhost:27017', 'database.uri'],
    [
      'databases: { main: { uri: embedded }, logs: { uri: embedded } }',
      'MONGODB_URI',
      'nowhere',
      'databases.main.uri',
    ],
    ['redis: { keyPrefix: p }', 'REDIS_URL', 'http://h', 'redis.url'],
    ['parse: { appId: a }', 'PARSE_SERVER_URL', 'nowhere', 'parse.serverUrl'],
  ])('names no place of a file with %j for what %s gives, but the variable', (yaml, name, value, path) => {
    const places = errorsOf(yaml, { [name]: value }).filter((error) => error.path === path);
    expect(places.length).toBeGreaterThan(0);
    for (const { at } of places) expect(at).toBe(name);
  });

  it('does not blame a file that there is not for what the environment gives', () => {
    const env = { MONGODB_URI: 'localhost:27017' };
    const message = (() => {
      try {
        return void loadConfig(env, join(folder, 'nothing-here'));
      } catch (error) {
        return String((error as Error).message);
      }
    })();
    expect(message).toMatch(/^the configuration cannot be used:\n {2}MONGODB_URI database\.uri: must be/);
    expect(message).not.toContain('parley.yaml');
  });

  it.each(['', '\n', '# nothing\n', '---\n', '{}', 'null', '~'])(
    'is no file that says nothing: %j',
    (text) => {
      expect(errorsOf(text, { MONGODB_URI: 'mongodb://127.0.0.1/app' })).toEqual([
        {
          path: '',
          at: expect.stringMatching(/parley\.yaml$/),
          message: expect.stringMatching(/^is empty: write into it/),
        },
      ]);
    },
  );

  it('lists every error at once, each with its path', () => {
    const errors = errorsOf(`
server: { prot: 1, port: many }
agents: { a: { permissions: root, tools: query_class } }
policy: { classes: { Post: { feilds: [title], hidden: maybe } } }
`);
    const paths = errors.map((error) => error.path);
    expect(paths).toContain('server.prot');
    expect(paths).toContain('server.port');
    expect(paths).toContain('agents.a.permissions');
    expect(paths).toContain('agents.a.tools');
    expect(paths).toContain('policy.classes.Post.feilds');
    expect(paths).toContain('policy.classes.Post.hidden');
  });

  it.each([
    ['an agent that does not exist', 'auth: [{ anonymous: true, agent: ghost }]', 'auth.0.agent'],
    [
      'two credentials in one rule',
      'agents: { a: {} }\nauth: [{ anonymous: true, apiKey: k, agent: a }]',
      'auth.0',
    ],
    ['no credential in a rule', 'agents: { a: {} }\nauth: [{ agent: a }]', 'auth.0'],
    ['an unknown profile', 'agents: { a: { tools: { profile: fat } } }', 'agents.a.tools.profile'],
    [
      'an unknown operator in a filter',
      'agents: { a: { filters: { Post: { x: { $nq: 1 } } } } }',
      'agents.a.filters.Post',
    ],
    [
      'an internal column in a canonical filter',
      'policy: { classes: { Post: { canonicalFilter: { _hashed_password: x } } } }',
      'policy.classes.Post.canonicalFilter',
    ],
    [
      'join fields that are not fields',
      'policy: { classes: { Post: { joinFields: [secret], fields: [title] } } }',
      'policy.classes.Post.joinFields',
    ],
    ['one class declared twice', 'policy: { classes: { User: {}, _User: {} } }', 'policy.classes._User'],
    [
      'an alias of an internal column',
      'policy: { classes: { Post: { properties: { x: { field: _rperm } } } } }',
      'policy.classes.Post.properties.x.field',
    ],
    ['LiveQuery of no application', "parse: { liveQueryUrl: 'wss://127.0.0.1' }", 'parse.appId'],
    [
      'LiveQuery in the clear to another machine',
      "parse: { liveQueryUrl: 'ws://parse.example', appId: a }",
      'parse.liveQueryUrl',
    ],
    [
      'LiveQuery over another protocol',
      "parse: { liveQueryUrl: 'https://parse.example', appId: a }",
      'parse.liveQueryUrl',
    ],
    ['no room for a subscription', 'subscriptions: { maxPerSession: 0 }', 'subscriptions.maxPerSession'],
    ['a budget of nothing', 'agents: { a: { budget: { window: 60 } } }', 'agents.a.budget'],
    ['a budget of an unknown quantity', 'agents: { a: { budget: { tokens: 1 } } }', 'agents.a.budget.tokens'],
    ['a tenant budget of nothing', 'policy: { tenantBudget: {} }', 'policy.tenantBudget'],
    [
      'a tenant budget that permits nothing',
      'policy: { tenantBudget: { rows: 0 } }',
      'policy.tenantBudget.rows',
    ],
    ['a Redis URL of another scheme', "redis: { url: 'http://127.0.0.1' }", 'redis.url'],
    ['a Redis URL that cannot be read', "redis: { url: 'redis://[bad' }", 'redis.url'],
    ['a prefix that would break keys apart', "redis: { prefix: 'a{b' }", 'redis.prefix'],
    [
      'two identities in one agent',
      'agents: { a: { identity: { user: u1, role: r } } }',
      'agents.a.identity',
    ],
    ['a user that is no id', "agents: { a: { identity: { user: 'role:x' } } }", 'agents.a.identity.user'],
    ['a role without a name', "agents: { a: { identity: { role: 'role:' } } }", 'agents.a.identity.role'],
    [
      'client mode with a user asserted',
      'agents: { a: { clientMode: true, identity: { user: u1 } } }',
      'agents.a.identity',
    ],
    [
      'client mode with the master key',
      'agents: { a: { clientMode: true, identity: master } }',
      'agents.a.identity',
    ],
    [
      'anonymous callers of an agent that reads with a session',
      'agents: { a: { clientMode: true } }\nauth: [{ anonymous: true, agent: a }]',
      'auth.0.agent',
    ],
    ['no rules where the first agent goes by a token', 'agents: { a: { tenantId: { claim: org } } }', 'auth'],
    [
      'sessions for an agent with an identity of its own',
      'agents: { a: { identity: { role: r } } }\nauth: [{ parseSession: true, agent: a }]',
      'auth.0.agent',
    ],
    ['a key given twice', 'server: { port: 1 }\nserver: { port: 2 }', ''],
  ])('refuses %s', (_, yaml, path) => {
    expect(errorsOf(yaml).map((error) => error.path)).toContain(path);
  });

  it.each([
    ['nests its parts without end', `policy: ${'['.repeat(50_000)}${']'.repeat(50_000)}`],
    ['opens parts without end', `policy: ${'{a: ['.repeat(50_000)}`],
    ['nests lists on one line', '- '.repeat(50_000)],
    [
      'indents its parts without end',
      Array.from({ length: 500 }, (_, at) => `${' '.repeat(at)}a:\n`).join(''),
    ],
    [
      'repeats what repeats its parts',
      Array.from('bcdefgh', (name, at) => `${name}: &${name} [${`*${'abcdefgh'[at]},`.repeat(9)}]`)
        .toSpliced(0, 0, 'a: &a [x]')
        .join('\n'),
    ],
  ])('refuses a text that %s in its own words', (_, text) => {
    expect(errorsOf(text)).toMatchObject([
      { path: '', message: 'repeats or nests its parts more often than a configuration can mean' },
    ]);
  });

  it.each(['? [a, b]\n: 1', '{ a: 1 }: 2', 'server: &server { port: 1 }\nagents: { *server : {} }'])(
    'refuses a name that is no text, with its place: %j',
    (text) => {
      expect(errorsOf(text)).toMatchObject([
        {
          path: '',
          at: expect.stringMatching(/:\d+:\d+$/),
          message: expect.stringMatching(/must be a text/),
        },
      ]);
    },
  );

  it.each([
    ['without a blank behind its colon', 'auth: [{ apiKey:SWORDFISH-1, agent: a }]', 'needs a blank'],
    ['in digits without quotes', 'auth: [{ apiKey: 98765432109876543210, agent: a }]', 'more digits than'],
    ['under another name', 'auth: [{ apikey: SWORDFISH-1, agent: a }]', "did you mean 'apiKey'"],
    ['in the place of a hash', 'auth: [{ apiKeyHash: SWORDFISH-1, agent: a }]', 'expected sha256:'],
    ['as an alias', 'auth: [{ apiKey: *SWORDFISH-1, agent: a }]', ''],
    ['with a quote that does not end', 'auth: [{ apiKey: "SWORDFISH-1, agent: a }]', ''],
    ['in a line of its own', 'auth:\n  - agent: a\n    apiKey:SWORDFISH-1', ''],
    ['in a URI without a scheme', 'database: { uri: "mongodb//u:SWORDFISH-1@db/x" }', 'must be'],
  ])('repeats no secret that is written %s', (_, yaml, message) => {
    const errors = errorsOf(`agents: { a: {} }\n${yaml}`);
    expect(errors[0]?.message).toContain(message);
    expect(JSON.stringify(errors)).not.toMatch(/SWORDFISH|98765432/);
  });

  it('refuses a second document, with its place', () => {
    expect(errorsOf('server: { port: 1 }\n---\nserver: { port: 2 }\n')).toMatchObject([
      { path: '', at: expect.stringMatching(/:2:1$/), message: expect.stringMatching(/second document/) },
    ]);
  });

  it('reads what a thousand agents share as one anchor', () => {
    const agents = Array.from({ length: 1_000 }, (_, at) => `  agent${at}: *shared\n`);
    const yaml = `agents:\n  first: &shared { rateLimit: 7 }\n${agents.join('')}`;
    expect(load(yaml).config.agents['agent999']).toMatchObject({ rateLimit: 7 });
  });

  it('refuses a file that is named but missing', () => {
    expect(() => loadConfig({ PARLEY_CONFIG: 'nowhere.yaml' }, folder)).toThrow(/no such file/);
  });
});

describe('variables inside values', () => {
  it('are replaced, with a default where one is given', () => {
    const yaml = 'server:\n  port: ${PARLEY_PORT:-4100}\ndatabase: { name: "db_${SUFFIX}" }';
    expect(load(yaml, { SUFFIX: 'x' }).config).toMatchObject({
      server: { port: 4100 },
      database: { name: 'db_x' },
    });
    expect(load(yaml, { SUFFIX: 'x', PARLEY_PORT: '4200' }).config.server.port).toBe(4200);
  });

  it('stay text inside quotes, so that a numeric key is still a key', () => {
    const { config } = load("agents: { a: {} }\nauth: [{ apiKey: '${KEY}', agent: a }]", { KEY: '12345' });
    expect(config.auth).toEqual([{ apiKey: '12345', agent: 'a' }]);
  });

  it.each<[string, Record<string, string>, string]>([
    ['${KEY}', { KEY: '' }, 'KEY is empty'],
    ['${KEY:-}', {}, 'KEY is not set'],
  ])('that give %s no text are named where a text is missed', (reference, env, said) => {
    const yaml = `agents: { a: {} }\nauth: [{ apiKey: '${reference}', agent: a }]`;
    expect(errorsOf(yaml, env)).toEqual([
      expect.objectContaining({
        path: 'auth.0.apiKey',
        message: expect.stringMatching(new RegExp(`^must be .*; environment variable ${said}$`)),
      }),
    ]);
  });

  it('stop the start when they are not set', () => {
    expect(errorsOf("agents: { a: {} }\nauth: [{ apiKey: '${KEY}', agent: a }]")).toEqual([
      expect.objectContaining({ message: expect.stringContaining('KEY') }),
    ]);
  });
});

describe('the environment', () => {
  it('wins over the file', () => {
    const { config } = load('server: { host: localhost, port: 1 }', {
      HOST: '::1',
      PORT: '4300',
      MONGODB_URI: 'mongodb://db/x',
    });
    expect(config.server).toMatchObject({ host: '::1', port: 4300 });
    expect(config.database.uri).toBe('mongodb://db/x');
  });

  it('refuses a port that is none', () => {
    expect(errorsOf(DEFAULTS, { PORT: 'x' })).toEqual([expect.objectContaining({ path: 'PORT' })]);
  });

  it('closes anonymous access with MCP_API_KEY', () => {
    expect(load(DEFAULTS, { MCP_API_KEY: 'k' }).config.auth).toEqual([{ apiKey: 'k', agent: 'default' }]);
    const yaml = 'agents: { a: {}, b: {} }\nauth: [{ anonymous: true, agent: b }]';
    expect(load(yaml, { MCP_API_KEY: 'k' }).config.auth).toEqual([{ apiKey: 'k', agent: 'b' }]);
  });
});

describe('the start gate', () => {
  const mayStart = (yaml: string, env: Record<string, string> = {}) =>
    void (writeFileSync(join(folder, 'parley.yaml'), yaml), checkConfig({ env, cwd: folder, start: 'http' }));

  it.each(['127.0.0.1', '::1', 'localhost'])('opens %s without authentication', (host) => {
    expect(() => mayStart(`server: { host: "${host}" }`)).not.toThrow();
  });

  it.each(['0.0.0.0', '::', '10.1.2.3', 'example.com'])('does not open %s without authentication', (host) => {
    expect(() => mayStart(`server: { host: "${host}" }`)).toThrow(/non-loopback.*MCP_API_KEY/s);
    expect(() => mayStart(`server: { host: "${host}" }`, { MCP_API_KEY: 'k' })).not.toThrow();
  });

  it.each(['false', '0', 'off', 'no', 'maybe'])('stays closed when PARSE_MCP_ENABLED is %s', (value) => {
    expect(() => mayStart(DEFAULTS, { PARSE_MCP_ENABLED: value })).toThrow(/PARSE_MCP_ENABLED/);
  });
});

describe('identities', () => {
  it('are the master key unless something else is said', () => {
    const { identities } = load(`
agents:
  plain: {}
  user: { identity: { user: u1 } }
  role: { identity: { role: 'role:editors' } }
  session: { identity: { session: caller } }
  client: { clientMode: true }
auth: [{ parseSession: true, agent: session }]
`);
    expect(Object.fromEntries(identities)).toEqual({
      plain: { kind: 'master' },
      user: { kind: 'aclUser', userId: 'u1' },
      role: { kind: 'aclRole', role: 'editors' },
      session: 'callerSession',
      client: 'callerSession',
    });
  });
});

describe('a Parse Server in the configuration', () => {
  const parse = 'serverUrl: "http://127.0.0.1:1337/parse", appId: app';

  it('has no direct access beside it unless its database is named', () => {
    expect(load(`parse: { ${parse}, masterKey: m }`).config.database.uri).toBeNull();
    const named = load(`
parse: { ${parse}, masterKey: m }
database: { uri: 'mongodb://127.0.0.1:27017' }
`);
    expect(named.config.database.uri).toBe('mongodb://127.0.0.1:27017');
  });

  it('comes from the environment as well', () => {
    const { config } = load(DEFAULTS, {
      PARSE_SERVER_URL: 'https://api.example.com/parse',
      PARSE_APP_ID: 'app',
      PARSE_MASTER_KEY: 'm',
      PARSE_REST_API_KEY: 'r',
    });
    expect(config.parse).toMatchObject({ appId: 'app', masterKey: 'm', restApiKey: 'r' });
  });

  it.each([
    ['without an application', 'parse: { serverUrl: "http://h/parse", masterKey: m }', 'parse.appId'],
    [
      'at an address with a password',
      'parse: { serverUrl: "http://u:p@h/", appId: a, masterKey: m }',
      'parse.serverUrl',
    ],
    [
      'at an address that is no web server',
      'parse: { serverUrl: "ftp://h/", appId: a, masterKey: m }',
      'parse.serverUrl',
    ],
    ['with a key that is no header', `parse: { ${parse}, masterKey: "a\\nb" }`, 'parse.masterKey'],
    [
      'beside the embedded database',
      `{ parse: { ${parse}, masterKey: m }, database: { uri: embedded } }`,
      'database.uri',
    ],
    [
      'with a seed and no database',
      `{ parse: { ${parse}, masterKey: m }, database: { seed: s.json } }`,
      'database.seed',
    ],
    [
      'with nowhere to look for the sessions of others',
      `{ parse: { ${parse}, masterKey: m }, agents: { a: { identity: { impersonate: ada } } } }`,
      'agents.a.identity',
    ],
    ['without a key to read classes with', `{ parse: { ${parse} }, auth: [] }`, 'parse.masterKey'],
  ])('does not start %s', (_title, yaml, path) => {
    expect(errorsOf(yaml).map((error) => error.path)).toContain(path);
  });

  it('leaves only agents in client mode where there is no master key', () => {
    const keyless = (agent: string) => `
parse: { ${parse} }
database: { uri: 'mongodb://127.0.0.1' }
agents: { a: { ${agent} } }
auth: [{ parseSession: true, agent: a }]
`;
    expect(load(keyless('')).agents.get('a')?.clientMode).toBe(true);
    expect(errorsOf(keyless('identity: { user: ada }')).map((error) => error.path)).toContain(
      'agents.a.identity',
    );
    expect(errorsOf(keyless('clientMode: false')).map((error) => error.path)).toContain(
      'agents.a.clientMode',
    );
  });

  it('is not left out together with the database', () => {
    expect(errorsOf('database: { uri: null }').map((error) => error.path)).toContain('database.uri');
  });
});
