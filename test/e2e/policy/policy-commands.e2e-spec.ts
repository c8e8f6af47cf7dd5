import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { type CommandsInTurn, commandsInTurn } from '../../support/commands-in-turn.js';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { type Database, startDatabase, WRITES_OPEN } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = makeFolder('policy');
let database: Database;
let commands: CommandsInTurn;
beforeAll(async () => {
  commands = commandsInTurn();
  database = await startDatabase(POSTS_SEED);
});
afterAll(async () => {
  await commands.stop();
  await database.stop();
});

/** `parley …` against the posts' database. */
const parley = (args: readonly string[], env: Record<string, string> = {}, cwd = folder) =>
  commands.run(args, { cwd, env: { MONGODB_URI: database.uri, ...env } });

function file(name: string, content: unknown): string {
  writeFileSync(join(folder, name), stringify(content));
  return name;
}

const CONFIG = POSTS_CONFIG as {
  agents: Record<string, object>;
  policy: { classes: Record<string, object> };
};
const [AGENT = ''] = Object.keys(CONFIG.agents);
const withClass = (className: string, more: object) => ({
  ...CONFIG,
  policy: {
    ...CONFIG.policy,
    classes: { ...CONFIG.policy.classes, [className]: { ...CONFIG.policy.classes[className], ...more } },
  },
});

describe('parley explain', () => {
  it('shows gates, injected predicates and the query of a call, and sends no data command', async () => {
    file('parley.yaml', CONFIG);
    const admin = new MongoClient(database.uri);
    const failing = (mode: string) =>
      admin.db('admin').command({
        configureFailPoint: 'failCommand',
        mode,
        data: { failCommands: ['aggregate', 'count', 'insert', 'update', 'delete'], errorCode: 2 },
      });
    try {
      // Commands that count or write rows now fail; the schema is read by others.
      await failing('alwaysOn');
      const call = ['count_objects', '{"class_name":"Post"}', '--agent', AGENT];
      const explained = await parley(['explain', ...call, '--json']);
      expect(explained).toMatchObject({ code: 0, stderr: '' });
      const simulated = JSON.parse(explained.stdout) as Record<string, unknown>;
      expect(simulated).toMatchObject({
        allowed: true,
        commands: [{ command: 'count', query: { className: 'Post' } }],
        injected: expect.arrayContaining([{ className: 'Post', origin: 'tenant', where: { orgId: 'acme' } }]),
      });
      expect(simulated['passed']).toEqual(
        expect.arrayContaining([{ gate: 'tool' }, { gate: 'class', subject: 'Post' }]),
      );
    } finally {
      await failing('off');
      await admin.close();
    }
  });

  it('names the gate that refused, and why, to the operator alone', async () => {
    file('parley.yaml', CONFIG);
    const { code, stdout } = await parley([
      'explain',
      'query_class',
      '{"class_name":"Post","where":{"$where":"1"}}',
      '--agent',
      AGENT,
    ]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/refused/);
    expect(stdout).toMatch(/security_blocked/);
    expect(stdout).toMatch(/told +Invalid params/);
    expect(stdout).toMatch(/because +\S+/);
  });

  it('never lets arguments drive the terminal', async () => {
    file('parley.yaml', CONFIG);
    const args = JSON.stringify({ class_name: 'Post', where: { title: '\u001b[2J\u202e' } });
    const { stdout } = await parley(['explain', 'query_class', args, '--agent', AGENT]);
    expect(stdout).toMatch(/find/);
    expect(stdout).not.toMatch(/[\u001b\u202e]/);
  });

  it.each<[string, string[], RegExp]>([
    ['an unknown agent', ['list_tools', '{}', '--agent', 'nobody'], /no agent named 'nobody'/],
    ['arguments that are not JSON', ['list_tools', '{', '--agent', AGENT], /not JSON/],
    ['arguments that are no object', ['list_tools', '[]', '--agent', AGENT], /must be a JSON object/],
  ])('fails for %s', async (_, args, text) => {
    const { code, stderr } = await parley(['explain', ...args]);
    expect(code).toBe(2);
    expect(stderr).toMatch(text);
    expect(stderr).not.toMatch(/ at .*\.js:\d+/);
  });
});

describe('parley policy check', () => {
  it('lists every error of a configuration and fails', async () => {
    file('broken.yaml', { ...withClass('Post', { feilds: [] }), serverr: {} });
    const check = ['policy', 'check', '--config', 'broken.yaml'];
    const { code, stdout } = await runCommand(check, '', { cwd: folder });
    expect(code).toBe(1);
    expect(stdout).toMatch(/serverr: unknown key/);
    expect(stdout).toMatch(/policy\.classes\.Post\.feilds: unknown key/);
  });

  it('tells what a start logs as [SECURITY], by its option, and counts it as no warning', async () => {
    file('posture.yaml', {
      ...withClass('Post', { description: 'Articles', fields: ['title'] }),
      agents: { writer: { permissions: 'write' } },
      auth: [{ apiKey: 'k'.repeat(32), agent: 'writer' }],
    });
    const check = ['policy', 'check', '--config', 'posture.yaml'];
    const { code, stdout } = await runCommand(check, '', { cwd: folder });
    expect(stdout).toMatch(
      /^security posture\.yaml:\d+:\d+ agents\.writer: agents with master posture \(writer\)/m,
    );
    expect(stdout).toMatch(/^security posture\.yaml:\d+:\d+ agents\.writer: .*without any approval tier/m);
    const warnings = stdout.match(/^warning /gm)?.length;
    expect([code, stdout]).toEqual([0, expect.stringContaining(`0 faults, ${warnings} warnings`)]);
  });

  it('fails for masks that widen upwards, need a key that is not there, or are none', async () => {
    const masks = {
      title: { readonly: 'mask', admin: 'drop' },
      status: 'hash',
      body: 'hide',
      objectId: 'mask',
    };
    file('broken.yaml', withClass('Post', { masks }));
    const { code, stdout } = await parley(['policy', 'check', '--config', 'broken.yaml']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/policy\.classes\.Post\.masks\.body: /);
    const { body: _body, ...readable } = masks;
    file('broken.yaml', withClass('Post', { masks: readable }));
    const compiled = await parley(['policy', 'check', '--config', 'broken.yaml']);
    expect(compiled.code).toBe(1);
    expect(compiled.stdout).toMatch(/Post\.masks\.title\.admin: a higher tier is masked by less/);
    expect(compiled.stdout).toMatch(/Post\.masks\.status: hash needs policy\.maskingKey/);
    expect(compiled.stdout).toMatch(/Post\.masks\.objectId: 'objectId' is part of every row/);
  });

  it('warns where there is no file, since nobody means to check the defaults', async () => {
    const empty = makeFolder('empty');
    const { code, stdout } = await parley(['policy', 'check'], {}, empty);
    expect(code).toBe(0);
    expect(stdout).toMatch(/warning \(file\): there is no .*parley\.yaml/);
  });

  it('warns of names of tools, arguments and prompts of plugins that vendors and hosts refuse', async () => {
    file('named.yaml', { ...CONFIG, plugins: [join(root, 'test/fixtures/plugins/named-for-none.mjs')] });
    const check = ['policy', 'check', '--config', 'named.yaml'];
    const { code, stdout } = await runCommand(check, '', { cwd: folder, env: { MONGODB_URI: database.uri } });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /warning .*plugins: tool reports\.monthly: the name is not.*'filter\[id\]' is not/,
    );
    expect(stdout).toMatch(/warning .*plugins: prompt review the month: the name is not.*no command for it/);
  });

  it('warns of names that the database does not have, and passes', async () => {
    file('typo.yaml', withClass('Pots', { hidden: true }));
    const { code, stdout } = await parley(['policy', 'check', '--config', 'typo.yaml']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/policy\.classes\.Pots: .*did you mean 'Post'/);
  });
});

describe('parley policy check of plain classes', () => {
  it('warns of what their collections contradict, under the option that corrects it', async () => {
    const admin = new MongoClient(database.uri);
    const db = admin.db('plain-check');
    await db.createCollection('orders', {
      validator: { $jsonSchema: { bsonType: 'object', properties: { total: { bsonType: 'string' } } } },
    });
    await db.collection<{ _id: unknown }>('mixed').insertMany([{ _id: 1 }, { _id: 'one' }]);
    await db.createCollection('shown', { viewOn: 'secrets', pipeline: [] });
    await admin.close();
    const uri = new URL(database.uri);
    uri.pathname = '/plain-check';
    file('plain.yaml', {
      database: { uri: uri.href, storage: 'plain' },
      agents: { seller: {} },
      policy: {
        classes: {
          Order: {
            collection: 'orders',
            properties: { total: { type: 'Number' }, customer: { type: 'Pointer', targetClass: 'Customer' } },
          },
          Mixed: { collection: 'mixed' },
          Shown: { collection: 'shown' },
          Gone: { collection: 'gone' },
        },
      },
    });
    const { code, stdout } = await parley(['policy', 'check', '--config', 'plain.yaml'], {
      MONGODB_URI: uri.href,
    });
    const found = stdout
      .split('\n')
      .filter((line) => /policy\.classes\.(?:Order|Mixed|Shown|Gone)/.test(line));
    const expected = [
      /^warning plain\.yaml:\d+:\d+ policy\.classes\.Order\.properties\.total: .*make them agree/,
      /^warning plain\.yaml:\d+:\d+ policy\.classes\.Order\.properties\.customer: .*no class here/,
      /^warning plain\.yaml:\d+:\d+ policy\.classes\.Mixed\.id: .*not of one type/,
      /^warning plain\.yaml:\d+:\d+ policy\.classes\.Shown\.collection: .*'secrets', which no class declares/,
      /^warning plain\.yaml:\d+:\d+ policy\.classes\.Gone\.collection: there is no collection 'gone'/,
    ];
    for (const line of expected) expect(found).toContainEqual(expect.stringMatching(line));
    expect(found.filter((line) => line.includes('.collection:'))).toHaveLength(2);
    expect(code).toBe(0);
  });
});

describe('parley policy test', () => {
  it('finds that every case of the demo policy holds', async () => {
    const cases = readdirSync(join(root, 'test', 'fixtures', 'policy-cases')).map((name) =>
      join('test', 'fixtures', 'policy-cases', name),
    );
    const { code, stdout } = await parley(['policy', 'test', ...cases], { MONGODB_URI: 'embedded' }, root);
    expect(stdout).toMatch(/\d+ held, 0 failed/);
    expect(code).toBe(0);
  });

  it('fails, saying what was found, when a case does not hold', async () => {
    file('parley.yaml', CONFIG);
    const call = { agent: AGENT, tool: 'count_objects', arguments: { class_name: 'Post' } };
    file('cases.yaml', [
      { ...call, rule: 'holds', expect: { allowed: true } },
      { ...call, rule: 'does not', expect: { refused: 'access_denied' } },
      { ...call, rule: 'carries less', expect: { allowed: true }, injected: { title: 'x' } },
    ]);
    const { code, stdout } = await parley(['policy', 'test', 'cases.yaml']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/1 held, 2 failed/);
    expect(stdout).toMatch(/but allowed/);
    expect(stdout).toMatch(/injected into Post/);
  });

  it('holds masks against what a case says of them', async () => {
    file('parley.yaml', withClass('Post', { masks: { title: 'mask' } }));
    const call = { agent: AGENT, tool: 'query_class', expect: { allowed: true } };
    const about = { ...call, arguments: { class_name: 'Post' } };
    file('cases.yaml', [
      { ...about, rule: 'holds', masked: { title: 'mask', status: 'none' } },
      { ...about, rule: 'does not', masked: { title: 'none' } },
    ]);
    const { stdout } = await parley(['policy', 'test', 'cases.yaml']);
    expect(stdout).toMatch(/1 held, 1 failed/);
    expect(stdout).toMatch(/expected Post\.title masked as 'none', found 'mask'/);
    const explained = await parley(['explain', 'query_class', '{"class_name":"Post"}', '--agent', AGENT]);
    expect(explained.stdout).toMatch(/MASKED IN +FIELD +AS\n *Post +title +mask/);
  });

  it('fails before it runs anything when a file has errors', async () => {
    file('cases.yaml', [{ agent: AGENT, tool: 'list_tools', expects: {} }]);
    const { code, stderr } = await parley(['policy', 'test', 'cases.yaml', 'missing.yaml']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/unknown key 'expects'/);
  });
});

describe('parley policy diff', () => {
  const diff = async (now: unknown) => {
    const files = [file('old.yaml', CONFIG), file('new.yaml', now)];
    const ended = await parley(['policy', 'diff', ...files, '--json', '--fail-on-widening']);
    expect(ended.stderr).toBe('');
    return { code: ended.code, ...(JSON.parse(ended.stdout) as { widens: boolean; changes: object[] }) };
  };

  it('shows no difference between a configuration and itself', async () => {
    expect(await diff(CONFIG)).toEqual({ code: 0, widens: false, changes: [] });
  });

  it('names a field that opens, and fails when asked to', async () => {
    const fields = [...(CONFIG.policy.classes['Post'] as { fields: string[] }).fields, 'internalNote'];
    const { code, changes } = await diff(withClass('Post', { fields }));
    expect(code).toBe(1);
    expect(changes).toContainEqual({
      agent: AGENT,
      className: 'Post',
      what: 'field',
      name: 'internalNote',
      effect: 'gained',
    });
  });

  it('counts a mask that comes as a loss and one that weakens as a gain, and passes the first alone', async () => {
    const masked = (mask: string) => withClass('Post', { masks: { title: mask } });
    const narrowed = await diff(masked('mask'));
    const change = { agent: AGENT, className: 'Post', what: 'mask', name: 'title' };
    expect(narrowed).toMatchObject({ code: 0, widens: false });
    expect(narrowed.changes).toContainEqual({ ...change, effect: 'lost', before: 'clear', after: 'mask' });
    const files = [file('old.yaml', masked('deny')), file('new.yaml', masked('mask'))];
    const ended = await parley(['policy', 'diff', ...files, '--fail-on-widening']);
    expect(ended.code).toBe(1);
    expect(ended.stdout).toMatch(/\+ title: deny -> mask/);
  });

  it('passes a configuration that only narrows', async () => {
    const { code, widens, changes } = await diff(withClass('Author', { hidden: true }));
    expect([code, widens]).toEqual([0, false]);
    expect(changes).toContainEqual({
      agent: AGENT,
      className: 'Author',
      what: 'class',
      name: 'Author',
      effect: 'lost',
    });
  });

  it('compares agents that read as a user', async () => {
    const person = (permissions: string) => ({
      ...CONFIG,
      agents: { ...CONFIG.agents, person: { permissions, identity: { user: 'u1' } } },
    });
    const files = [file('old.yaml', person('readonly')), file('new.yaml', person('write'))];
    const ended = await parley(['policy', 'diff', ...files, '--json', '--fail-on-widening'], WRITES_OPEN);
    expect([ended.code, ended.stderr]).toEqual([1, '']);
    const { changes } = JSON.parse(ended.stdout) as { changes: Record<string, string>[] };
    expect(changes).toContainEqual({
      agent: 'person',
      what: 'tool',
      name: 'create_object',
      effect: 'gained',
    });
  });

  it('finds every tool on every class that a new agent with every gate open may call', async () => {
    const agents = { ...CONFIG.agents, keeper: { permissions: 'admin', tenantId: 'acme' } };
    const files = [file('old.yaml', CONFIG), file('new.yaml', { ...CONFIG, agents })];
    const { stdout } = await parley(['policy', 'diff', ...files, '--json'], WRITES_OPEN);
    const { changes } = JSON.parse(stdout) as { changes: Record<string, string>[] };
    const found = changes.filter(
      ({ agent, className, what }) => agent === 'keeper' && className === 'Post' && what === 'operation',
    );
    // Post is not declared searchable, and the agent not built for facets.
    const refused = ['atlas_faceted_search', 'semantic_search', 'find_similar'];
    const unasked = new Set(['list_tools', 'get_all_schemas', 'call_method', ...refused]);
    const tools = changes.filter(({ agent, what }) => agent === 'keeper' && what === 'tool');
    expect(found.map(({ name }) => name)).toEqual(
      tools.map(({ name = '' }) => name).filter((name) => !unasked.has(name)),
    );
    expect(found.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'create_object',
        'update_object',
        'delete_object',
        'group_by_date',
        'distinct',
      ]),
    );
  });

  it('lists what an agent loses that reads with a user’s rights instead of the master key', async () => {
    const agents = { analyst: { ...CONFIG.agents['analyst'], identity: { user: 'u1' } } };
    const { code, widens } = await diff({ ...CONFIG, agents });
    expect([code, widens]).toEqual([0, false]);
  });
});
